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

const whyHelp = `OBJECT is port/NAME, lease/NAME or journal/SEQ; an ID may replace the name. The command asks the workflow first. If the
workflow is closed or Temporal is unavailable, it asks the API.

OBJECT may also be a workflow without an object in the API: webhook/LEASE (notifications of a lease to the webhook),
announce/NETWORK (notifications of a network to its agents), pool/HOST (the host in Nova's aggregate freepool),
odl/full-sync, odl/recovery, odl/audit or odl/repair.`

// explanation is a contract.Why, with the source from which it was read.
type explanation struct {
	contract.Why
	Source string `json:"source"`         // workflow, api, or temporal for a closed workflow
	Note   string `json:"note,omitempty"` // why the source is not the workflow
	// Agents are the agents that block the port.
	Agents []blockingAgent `json:"agents,omitempty"`
}

func whyCommand(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		if workflow, err := workflowWithoutObject(ctx, s, args[0]); err != nil || workflow != "" {
			return explainWorkflow(ctx, s, workflow, err)
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

// workflowWithoutObject returns the ID of a workflow that has no object in the API, for example pool/HOST. It returns an empty ID if the
// word does not name such a workflow.
func workflowWithoutObject(ctx context.Context, s *cli.Session, word string) (string, error) {
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

// explainWorkflow prints what a workflow without an object in the API waits for. A closed workflow has no more work.
func explainWorkflow(ctx context.Context, s *cli.Session, workflow string, err error) error {
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

// explain asks the workflow of an object what the object waits for. If the workflow is closed or Temporal is unavailable, explain asks the
// API.
func explain(ctx context.Context, s *cli.Session, r *cli.Resource, id string) (explanation, error) {
	w, queryErr := QueryWhy(ctx, s, resource.WorkflowID(r, id))
	if queryErr == nil {
		return explanation{Why: w, Source: "workflow"}, nil
	}
	o, err := r.Get(ctx, s, id)
	if err != nil {
		if cli.ExitCode(err) == cli.ExitUnavailable {
			return explanation{}, errors.Join(queryErr, err)
		}
		return explanation{}, err
	}
	note := "Temporal is unavailable"
	if errors.Is(queryErr, errWorkflowClosed) || cli.ExitCode(queryErr) == cli.ExitNotFound {
		note = "its workflow is closed or not found"
	}
	return explanation{Why: whyFromObject(r, id, o), Source: "api", Note: note}, nil
}
