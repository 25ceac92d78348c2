package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// delivery describes a workflow that delivers recorded notifications or changes to another service
// (AgentNotifications, Webhook, Pool).
type delivery struct {
	workflow string // workflow type
	id       string // workflow ID
	in       contract.Input
	summary  string
	activity string // registered name of the activity that delivers all recorded notifications or changes
	// whyUndelivered returns the description of the last failed attempt for the query "why".
	whyUndelivered func(lastError string) contract.Why
}

// stateUndelivered is the workflow's state after the first attempt has failed and until the delivery
// succeeds.
const stateUndelivered = "undelivered"

// deliver runs the activity of a delivery until the activity has succeeded and no further nudge (signal
// `changed`) waits in the channel. The first attempt of a delivery is a local activity. Further attempts of a
// delivery are attempts of a regular activity, so that Temporal's UI shows them. If many nudges arrive while
// the other service is unavailable, deliver interrupts the regular activity and continues as new, and the new
// run continues with a regular activity.
func deliver(ctx workflow.Context, d delivery) error {
	status, err := newStatusReporter(ctx, d.id)
	if err != nil {
		return err
	}
	changed := changedSignals(ctx)
	in := contract.Input{Key: d.in.Key}
	for handled, failed := 0, d.in.FailedAttempt; ; {
		handled += discardAll(changed)
		full := func() bool { return deliveryIsFull(ctx, handled+changed.Len()) }
		if failed == "" {
			once := localSingleAttempt(ctx, d.summary)
			if err := workflow.ExecuteLocalActivity(once, d.activity, d.in.Key).Get(ctx, nil); err != nil {
				failed = err.Error()
			}
		}
		if failed != "" {
			if err := status.report(ctx, d.whyUndelivered(failed), nil); err != nil {
				return err
			}
			interrupted, err := executeUntilFull(remoteUnlimited(ctx, d.summary),
				full, nil, d.activity, d.in.Key)
			if err != nil && !interrupted {
				interrupted = pauseUntilFull(ctx, full)
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case interrupted && err == nil: // the last attempt succeeded
				return workflow.NewContinueAsNewError(ctx, d.workflow, in)
			case interrupted:
				in.FailedAttempt = failed
				return workflow.NewContinueAsNewError(ctx, d.workflow, in)
			case err != nil:
				failed = ""
				continue
			}
		}
		failed = ""
		switch {
		case changed.Len() == 0:
			return nil
		case shouldContinueAsNew(ctx, handled):
			return workflow.NewContinueAsNewError(ctx, d.workflow, in)
		}
	}
}

// messagesPerDelivery is the number of signals and updates after which a workflow interrupts a delivery that
// fails, because the run cannot continue as new while the activity of the delivery runs. messagesPerDelivery
// is more than messagesPerRun, so that a new run, which begins with a new attempt, is rare.
const messagesPerDelivery = 500

// deliveryIsFull reports whether a run has received so many messages that the run should interrupt its
// delivery and continue as new.
func deliveryIsFull(ctx workflow.Context, received int) bool {
	return received >= messagesPerDelivery || shouldContinueAsNew(ctx, 0)
}

// executeUntilFull runs a regular activity that may fail for a long time. If the function `full` returns true
// before the activity has ended, executeUntilFull cancels the activity and returns true as `interrupted`. An
// attempt that runs at this moment ends first.
func executeUntilFull(
	ctx workflow.Context,
	full func() bool,
	result any,
	activity string,
	args ...any,
) (interrupted bool, err error) {
	activityCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	attempts := workflow.ExecuteActivity(activityCtx, activity, args...)
	err = workflow.Await(ctx, func() bool { return attempts.IsReady() || full() })
	interrupted = err == nil && !attempts.IsReady()
	if interrupted {
		cancel()
	}
	return interrupted, attempts.Get(ctx, result)
}

// pauseUntilFull waits for failurePause. pauseUntilFull returns true, and may return earlier, if the function
// `full` returns true.
func pauseUntilFull(ctx workflow.Context, full func() bool) (interrupted bool) {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimer(timerCtx, failurePause)
	if workflow.Await(ctx, func() bool { return timer.IsReady() || full() }) != nil {
		return false
	}
	if full() {
		return true
	}
	_ = timer.Get(ctx, nil)
	return false
}
