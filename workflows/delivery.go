package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// delivery describes a workflow that delivers recorded notifications or changes to another service (Announce, Webhook,
// Pool).
type delivery struct {
	workflow string // workflow type
	id       string // workflow ID
	in       contract.Input
	summary  string
	activity string // registered name of the activity that delivers all recorded notifications or changes
	// whyUndelivered returns the description of the failure of the first attempt for the query "why".
	whyUndelivered func(error) contract.Why
}

// stateUndelivered is the workflow's state after the first attempt has failed and until the delivery succeeds. The
// value of stateUndelivered must not change, because the recorded histories in testdata contain this value.
const stateUndelivered = "untold"

// deliver runs the activity of a delivery until the activity has succeeded and no further nudge waits. The first
// attempt of a delivery is a local activity. Further attempts of a delivery are attempts of a regular activity, so that
// Temporal's UI shows them.
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
