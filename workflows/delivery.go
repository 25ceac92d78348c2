package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// delivery describes a workflow that delivers the recorded notifications or changes to another service.
type delivery struct {
	workflow string // workflow type
	id       string // workflow ID
	in       contract.Input
	summary  string
	activity string // registered name of the activity that delivers all recorded notifications or changes
	// whyUndelivered describes the failure of the first attempt.
	whyUndelivered func(error) contract.Why
}

// stateUndelivered is the state while the first delivery has failed. Recorded histories contain the value.
const stateUndelivered = "untold"

// deliver runs the activity until it succeeds and no further nudge waits. The first attempt is a local activity; further
// attempts are regular ones, so that the UI shows them.
func deliver(ctx workflow.Context, d delivery) error {
	status, err := newStatusReporter(ctx, d.id)
	if err != nil {
		return err
	}
	changed := changedSignals(ctx)
	for handled := 0; ; {
		handled += discardAll(changed)
		err := workflow.ExecuteLocalActivity(localSingleAttempt(ctx, d.summary), d.activity, d.in.Key).Get(ctx, nil)
		if err != nil {
			if err := status.report(ctx, d.whyUndelivered(err)); err != nil {
				return err
			}
			err = workflow.ExecuteActivity(remoteUnlimited(ctx, d.summary), d.activity, d.in.Key).Get(ctx, nil)
		}
		if err != nil {
			if err := workflow.Sleep(ctx, failurePause); err != nil {
				return err
			}
			continue
		}
		switch {
		case changed.Len() == 0:
			return nil
		case shouldContinueAsNew(ctx, handled):
			return workflow.NewContinueAsNewError(ctx, d.workflow, d.in)
		}
	}
}
