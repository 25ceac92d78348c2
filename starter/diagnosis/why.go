package diagnosis

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"berth/internal/contract"
	"berth/starter/cli"
	"berth/starter/resource"
)

const whyHelp = `OBJECT is port/NAME, trunk/NAME, lease/NAME or journal/SEQ; an ID may replace the name. The command asks the workflow
first. If the workflow is closed or Temporal is unavailable, it asks the API. Trunks have no workflow, so it asks the API.

OBJECT may also be a workflow without an object in the API: webhook/LEASE (notifications of a lease to the webhook),
webhook/port/NAME or webhook/ID (the same for a port, or for the trunk with this ID), agent-notifications/NETWORK
(notifications of a network to its agents), pool/HOST (the host in Nova's aggregate freepool), odl/full-sync, odl/recovery,
odl/audit, odl/repair, or maintenance/sweep (the job that restarts lost workflows). If such a workflow has
ended, the command says what starts it again. If Temporal does not know the workflow, the exit code is 3.`

// explanation is a contract.Why (it says what an object waits for), with the source from which the command
// has read it.
type explanation struct {
	contract.Why
	Source string `json:"source"`         // workflow, api, or temporal for a closed workflow
	Note   string `json:"note,omitempty"` // why the source is not the workflow
	// Attempts are the activities that the workflow retries. The workflow itself learns of an activity only
	// when the activity has ended.
	Attempts []attempts `json:"attempts,omitempty"`
	// Agents are the agents that block the port, or the warning that the L2 agent of an ACTIVE port is
	// silent.
	Agents []blockingAgent `json:"agents,omitempty"`
}

func whyCommand(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		return writeWhy(ctx, s, s.Output, args[0])
	}
}

// Why writes the text of `starter why OBJECT`. It returns the same errors as this command.
func Why(ctx context.Context, s *cli.Session, w io.Writer, object string) error {
	return writeWhy(ctx, s, &cli.Printer{Writer: w, Format: "table"}, object)
}

func writeWhy(ctx context.Context, s *cli.Session, p *cli.Printer, object string) error {
	e, err := explainWord(ctx, s, object)
	if err != nil {
		return err
	}
	return printWhy(p, s.Now(), e)
}

// explainWord explains the object or the workflow that the argument of `starter why` names.
func explainWord(ctx context.Context, s *cli.Session, word string) (explanation, error) {
	workflow, err := workflowWithoutObject(ctx, s, word)
	if err != nil {
		return explanation{}, err
	}
	if workflow != "" {
		return explainWorkflow(ctx, s, workflow)
	}
	r, id, err := resource.ResolveTarget(ctx, s, word)
	if err != nil {
		return explanation{}, err
	}
	e, err := explain(ctx, s, r, id)
	if err != nil {
		return explanation{}, err
	}
	e.Agents = blockingAgents(ctx, s, r, id, e.Why)
	return e, nil
}

// explain asks the workflow of an object what the object waits for. If this query fails, for example because
// the workflow is closed or Temporal is unavailable, explain asks the API.
func explain(ctx context.Context, s *cli.Session, r *cli.Resource, id string) (explanation, error) {
	if r == resource.Trunks {
		o, err := r.Get(ctx, s, id)
		return explanation{Why: whyFromObject(r, id, o), Source: "api", Note: "a trunk has no workflow"}, err
	}
	w, queryErr := QueryWhy(ctx, s, resource.WorkflowID(r, id))
	if queryErr == nil {
		e := explanation{Why: w, Source: "workflow"}
		e.addAttempts(ctx, s, resource.WorkflowID(r, id))
		if w.LastError == "" || r != resource.Leases && r != resource.JournalEntries {
			return e, nil
		}
		// the API knows the latest attempt, the workflow knows only the first
		if o, err := r.Get(ctx, s, id); err == nil {
			latest := whyFromObject(r, id, o)
			e.State, e.Sentence, e.LastError, e.NextAttempt = latest.State, latest.Sentence, latest.LastError, latest.NextAttempt
		}
		return e, nil
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
