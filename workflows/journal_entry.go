package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
)

// JournalEntry sends one journal entry to the controller. The workflow JournalEntry waits while earlier
// journal entries block its entry. The first attempt to send the entry is a local activity. If the controller
// is unavailable, the workflow continues with a regular activity, which Temporal retries, so that Temporal's
// UI shows the attempts and the next retry. If the entry fails, the workflow waits until a recovery or an
// administrator retries or skips the entry.
func JournalEntry(ctx workflow.Context, in contract.Input) (contract.EntryProgress, error) {
	status, err := newStatusReporter(ctx, contract.JournalID(in.Key))
	if err != nil {
		return contract.EntryProgress{}, err
	}
	changed := changedSignals(ctx)
	handled := discardAll(changed)
	interrupted := func() bool { return changed.Len() > 0 || shouldContinueAsNew(ctx, handled) }
	p := tryEntry(ctx, in.Key)
	for waited := false; ; waited = true {
		completed := journal.State(p.State) == journal.Completed
		if !completed || waited { // an entry whose first attempt succeeds needs no further history events
			if err := status.report(ctx, whyEntry(p), nil); err != nil {
				return p, err
			}
		}
		switch {
		case completed:
			return p, nil
		case shouldContinueAsNew(ctx, handled):
			return contract.EntryProgress{}, workflow.NewContinueAsNewError(ctx, contract.JournalEntry, in)
		case p.Blocked || journal.State(p.State) == journal.Failed:
			if err := workflow.Await(ctx, interrupted); err != nil {
				return p, err
			}
			handled += discardAll(changed)
			p = tryEntry(ctx, in.Key)
		default:
			stopped, err := retryUntilInterrupted(ctx, in.Key, &p, interrupted)
			if err != nil {
				return p, err
			}
			if stopped {
				handled += discardAll(changed)
				p = tryEntry(ctx, in.Key)
			}
		}
	}
}

// tryEntry makes one attempt in a local activity.
func tryEntry(ctx workflow.Context, key string) contract.EntryProgress {
	p := contract.EntryProgress{State: string(journal.Pending)}
	if err := workflow.ExecuteLocalActivity(localSingleAttempt(ctx, "mirror entry "+key), activities.TryEntry, key).Get(ctx, &p); err != nil {
		p.LastError = err.Error()
		p.Sentence = "The attempt at entry " + key + " failed: " + p.LastError + "."
	}
	return p
}

// retryUntilInterrupted retries an entry while the controller is unavailable. If the function `interrupted`
// returns true, retryUntilInterrupted cancels the activity and returns true as `stopped`. The cancellation
// also ends the pause between two attempts of the activity.
func retryUntilInterrupted(
	ctx workflow.Context,
	key string,
	p *contract.EntryProgress,
	interrupted func() bool,
) (stopped bool, err error) {
	activityCtx, cancel := workflow.WithCancel(remoteUnlimited(ctx, "mirror entry "+key))
	defer cancel()
	attempts := workflow.ExecuteActivity(activityCtx, activities.MirrorEntry, key)
	if err := workflow.Await(ctx, func() bool { return attempts.IsReady() || interrupted() }); err != nil {
		return false, err
	}
	stopped = !attempts.IsReady()
	if stopped {
		cancel()
	}
	// a new value: fields that the result omits must not keep their old values
	var result contract.EntryProgress
	if err = attempts.Get(ctx, &result); err == nil {
		*p = result
	}
	// cancelled, or the last attempt failed before the cancellation
	if stopped && err != nil && ctx.Err() == nil {
		return true, nil
	}
	return false, err
}

func whyEntry(p contract.EntryProgress) contract.Why {
	return contract.Why{
		State:       p.State,
		Sentence:    p.Sentence,
		Waiting:     p.Waiting,
		LastError:   p.LastError,
		NextAttempt: p.NextAttempt,
	}
}
