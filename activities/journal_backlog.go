package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/journal"
	"berth/internal/panics"
)

// drainConcurrency is how many entries of the backlog are sent at the same time.
const drainConcurrency = 32

// drainBacklog sends the entries that accumulated while the controller was unavailable, oldest first, until
// none is left or the time is over. Without the drain, each entry would be sent later, by its own workflow.
// Only one activity per process drains the backlog at a time. The workflows of the sent entries then find
// their entries completed. If entries may be left, `unfinished` is true, and `after` is the pause before the
// next attempt.
func (a *Activities) drainBacklog(ctx context.Context, key string) (unfinished bool, after time.Duration) {
	if !a.drainLock.TryLock() {
		return false, 0
	}
	defer a.drainLock.Unlock()
	sender, err := parseSequence(key)
	if err != nil {
		return false, 0
	}
	begin := time.Now()
	since, err := a.Store.Journal.Now(ctx)
	for err == nil {
		if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < a.Timeouts.ShortCall {
			return true, 0
		}
		var claimed []journal.ClaimResult
		if claimed, err = a.Store.Journal.ClaimBacklog(ctx, since, drainConcurrency, sender); err == nil {
			a.attemptAll(ctx, claimed)
		}
		if wait, _ := a.ODL.BreakerWait(); wait > 0 {
			return false, 0
		}
		if err == nil && len(claimed) == 0 {
			unfinished, err = a.Store.Journal.HasClaimedBacklog(ctx)
			if err == nil {
				return unfinished, a.Store.Journal.ClaimDuration()
			}
		}
		if err == nil && time.Since(begin) >= a.Timeouts.Drain {
			return true, 0
		}
	}
	if activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("draining the journal backlog failed", "error", err)
	}
	return true, a.Store.Journal.ClaimDuration()
}

// attemptAll makes one attempt to send each claimed entry, even if ctx is cancelled meanwhile.
func (a *Activities) attemptAll(ctx context.Context, claimed []journal.ClaimResult) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Timeouts.ShortCall)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range claimed {
		all.Go(func() {
			defer panics.Recover(ctx, "the attempt to send a journal entry", new(error))
			_, _, err := a.attemptEntry(ctx, t, a.Store.Journal.SaveSharedOutcome)
			if err != nil && activity.IsActivity(ctx) {
				activity.GetLogger(ctx).
					Warn("entry of the backlog failed; its own workflow retries", "entry", t.Entry.Seq, "error", err)
			}
		})
	}
	all.Wait()
}
