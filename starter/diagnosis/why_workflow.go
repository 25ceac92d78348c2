package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/starter/cli"
	"berth/starter/resource"
)

// sweepID is the ID of the schedule of the sweep. The workflow ID of each round of the sweep is sweepID, a
// hyphen and a time.
var sweepID = contract.MaintenanceID(contract.KeySweep)

// workflowWithoutObject returns the ID of a workflow that has no object in the API, for example pool/HOST. It
// returns an empty ID if the word does not name such a workflow.
func workflowWithoutObject(ctx context.Context, s *cli.Session, word string) (string, error) {
	kind, name, _ := strings.Cut(word, "/")
	switch {
	case name == "":
		return "", nil
	case kind == "pool":
		return contract.PoolID(name), nil
	case kind == "webhook":
		id, err := resolveNotified(ctx, s, name)
		return contract.WebhookID(id), err
	case kind == "agent-notifications":
		id, err := resource.Networks.Resolve(ctx, s, name)
		return contract.AgentNotificationsID(id), err
	case kind == "odl" && contract.RunWorkflows[name] == "":
		return "", cli.UsageError("%q is none of odl/%s", word,
			strings.Join(slices.Sorted(maps.Keys(contract.RunWorkflows)), ", odl/"))
	case kind == "odl":
		return contract.RunID(name), nil
	case kind == "maintenance" && word != sweepID && !strings.HasPrefix(word, sweepID+"-"):
		return "", cli.UsageError("%q is neither %s nor one of its rounds, %s-TIME", word, sweepID, sweepID)
	case kind == "maintenance":
		return word, nil
	}
	return "", nil
}

// resolveNotified returns the ID of an object with webhook notifications: port/NAME, the name of a lease, or
// an ID.
func resolveNotified(ctx context.Context, s *cli.Session, name string) (string, error) {
	if port, ok := strings.CutPrefix(name, "port/"); ok {
		return resource.Ports.Resolve(ctx, s, port)
	}
	return resource.Leases.Resolve(ctx, s, name)
}

// startsWhen returns a sentence about what starts a workflow that has no object in the API.
func startsWhen(workflow string) string {
	switch kind, key, _ := strings.Cut(workflow, "/"); {
	case kind == "agent-notifications" && isDerivedID(key):
		return "It starts when agents must be notified of a change of the security groups of a project, of tunnel endpoints, of MACs of distributed routers, or of DHCP agents."
	case kind == "agent-notifications":
		return "It starts when agents must be notified of a change of the network."
	case kind == "webhook":
		return "It starts when the lease changes, or when nothing blocks the port or trunk any more, if a webhook is configured."
	case kind == "pool":
		return "It starts when the host must be added to Nova's aggregate freepool or removed from it."
	case kind == "maintenance":
		return "The schedule " + sweepID + " starts the rounds of the sweep."
	case key == contract.KeyFullSync:
		return "`starter odl sync` starts it. berth also starts it before its first comparison with the controller, and when the controller has lost its data."
	case key == contract.KeyRecovery:
		return "`starter odl recover` starts it. berth also starts it after a journal entry has failed."
	case key == contract.KeyAudit:
		return "`starter odl audit` starts it."
	default:
		return "`starter odl repair` starts it."
	}
}

// isDerivedID reports whether a UUID is derived from a name (version 5). Notifications about no network have
// such an ID instead of that of a network.
func isDerivedID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.Version() == 5
}

// explainWorkflow says what a workflow without an object in the API waits for. If the workflow is closed,
// explainWorkflow says what starts it.
func explainWorkflow(ctx context.Context, s *cli.Session, workflow string) (explanation, error) {
	if workflow == sweepID {
		return explainSweep(ctx, s)
	}
	w, err := QueryWhy(ctx, s, workflow)
	switch {
	case errors.Is(err, errWorkflowClosed):
		w = contract.Why{
			Object:   workflow,
			State:    "closed",
			Sentence: "The workflow has ended; nothing is running. " + startsWhen(workflow),
		}
		return explanation{Why: w, Source: "temporal"}, nil
	case errors.Is(err, cli.ErrNoWorkflow):
		return explanation{}, cli.Errorf(
			cli.ExitNotFound,
			startsWhen(workflow),
			"workflow %s is not found; nothing is running",
			workflow,
		)
	case err != nil:
		return explanation{}, err
	}
	e := explanation{Why: w, Source: "workflow"}
	e.addAttempts(ctx, s, workflow)
	return e, nil
}

// resumeSweep says how to resume a paused schedule of the sweep.
var resumeSweep = "`temporal schedule toggle --unpause --schedule-id " + sweepID + "` resumes it."

// sweepSchedule reads the schedule of the sweep.
func sweepSchedule(ctx context.Context, s *cli.Session) (*client.ScheduleDescription, error) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return nil, err
	}
	schedule, err := c.ScheduleClient().GetHandle(ctx, sweepID).Describe(ctx)
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return nil, cli.Errorf(
			cli.ExitNotFound,
			"A process with the role `temporal` creates the schedule.",
			"the schedule %s is not found; nothing is running",
			sweepID,
		)
	case err != nil:
		return nil, cli.TemporalError(s.Settings, sweepID, err)
	}
	return schedule, nil
}

// explainSweep explains the running round of the sweep. If no round runs, explainSweep says when the schedule
// starts the next one.
func explainSweep(ctx context.Context, s *cli.Session) (explanation, error) {
	ctx, cancel := s.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	schedule, err := sweepSchedule(ctx, s)
	if err != nil {
		return explanation{}, err
	}
	for _, round := range schedule.Info.RunningWorkflows {
		w, err := QueryWhy(ctx, s, round.WorkflowID)
		// the round has ended since
		if errors.Is(err, errWorkflowClosed) || errors.Is(err, cli.ErrNoWorkflow) {
			continue
		}
		if err != nil {
			return explanation{}, err
		}
		return explanation{Why: w, Source: "workflow"}, nil
	}
	return explanation{Why: whyFromSchedule(schedule), Source: "temporal"}, nil
}

// whyFromSchedule explains the sweep from its schedule when no round runs.
func whyFromSchedule(d *client.ScheduleDescription) contract.Why {
	w := contract.Why{Object: sweepID, State: "scheduled", Sentence: "No round of the sweep is running."}
	state := d.Schedule.State
	switch {
	case state != nil && state.Paused:
		w.State = "paused"
		w.Sentence += " The schedule is paused; " + resumeSweep
	case len(d.Info.NextActionTimes) > 0:
		next := d.Info.NextActionTimes[0]
		w.NextAttempt = &next
		w.Sentence += fmt.Sprintf(" The schedule starts the next round at %s.",
			next.Local().Format(time.RFC3339))
	default:
		w.Sentence += " The schedule has no next round."
	}
	return w
}
