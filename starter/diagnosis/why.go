package diagnosis

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"berth/internal/contract"
	"berth/starter/cli"
	"berth/starter/resource"
)

const whyHelp = `OBJECT is port/NAME, lease/NAME or journal/SEQ; an ID is as good as a name. The workflow is asked first; when it is
closed, or Temporal is away, the API answers from the row. It may also be what brings something out: webhook/LEASE (what listeners hear
of it), announce/NETWORK (what agents hear of it), pool/HOST (what the cloud hears of it), or odl/full-sync, odl/recovery, odl/audit and
odl/repair.`

// explanation is a Why and its source.
type explanation struct {
	contract.Why
	Source string `json:"source"`         // workflow, api, or temporal for a closed workflow
	Note   string `json:"note,omitempty"` // why the source is not the workflow
	// Agents are the agents that block the port.
	Agents []blockingAgent `json:"agents,omitempty"`
}

func whyCommand(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		if workflow, err := rowlessWorkflow(ctx, s, args[0]); err != nil || workflow != "" {
			return explainRowless(ctx, s, workflow, err)
		}
		r, id, err := resource.ResolveTarget(ctx, s, args[0])
		if err != nil {
			return err
		}
		e, err := explain(ctx, s, r, id)
		if err != nil {
			return err
		}
		e.Agents = blockingAgents(ctx, s, r, id, e.Why)
		return printWhy(s, e)
	}
}

// rowlessWorkflow returns the ID of a workflow that delivers something and has no row in the API, such as pool/HOST. It
// returns an empty ID if the word names no such workflow.
func rowlessWorkflow(ctx context.Context, s *cli.Session, word string) (string, error) {
	kind, name, _ := strings.Cut(word, "/")
	switch {
	case name == "":
		return "", nil
	case kind == "pool":
		return contract.PoolID(name), nil
	case kind == "webhook":
		id, err := resource.Leases.Resolve(ctx, s, name)
		return contract.WebhookID(id), err
	case kind == "announce":
		id, err := resource.Networks.Resolve(ctx, s, name)
		return contract.AnnounceID(id), err
	case kind == "odl" && contract.RunWorkflows[name] == "":
		return "", cli.UsageError("%q is none of odl/%s", word, strings.Join(slices.Sorted(maps.Keys(contract.RunWorkflows)), ", odl/"))
	case kind == "odl":
		return contract.RunID(name), nil
	}
	return "", nil
}

// explainRowless asks such a workflow. A closed one had nothing left to do.
func explainRowless(ctx context.Context, s *cli.Session, workflow string, err error) error {
	if err != nil {
		return err
	}
	w, err := QueryWhy(ctx, s, workflow)
	switch {
	case errors.Is(err, errWorkflowClosed):
		w = contract.Why{Object: workflow, State: "closed", Sentence: "The workflow has ended; it starts again when there is work."}
		return printWhy(s, explanation{Why: w, Source: "temporal"})
	case errors.Is(err, cli.ErrNoWorkflow):
		return cli.Errorf(cli.ExitNotFound, "It runs only while there is work.", "workflow %s is not found", workflow)
	case err != nil:
		return err
	}
	return printWhy(s, explanation{Why: w, Source: "workflow"})
}

// explain asks the workflow. If it is closed or Temporal is unavailable, explain asks the API.
func explain(ctx context.Context, s *cli.Session, r *cli.Resource, id string) (explanation, error) {
	w, asked := QueryWhy(ctx, s, resource.WorkflowID(r, id))
	if asked == nil {
		return explanation{Why: w, Source: "workflow"}, nil
	}
	o, err := r.Get(ctx, s, id)
	if err != nil {
		if cli.ExitCode(err) == cli.ExitUnavailable {
			return explanation{}, errors.Join(asked, err)
		}
		return explanation{}, err
	}
	note := "Temporal is unavailable"
	if errors.Is(asked, errWorkflowClosed) || cli.ExitCode(asked) == cli.ExitNotFound {
		note = "its workflow is closed or not found"
	}
	return explanation{Why: whyFromObject(r, id, o), Source: "api", Note: note}, nil
}
