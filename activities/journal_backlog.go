package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/journal"
)

// drainConcurrency is how many entries of the backlog are sent at the same time.
const drainConcurrency = 32

// drainBacklog sends the entries that accumulated while the controller was unavailable, oldest first, until none is
// left or the time is over. Otherwise each entry would be retried later in a workflow task of its own. One activity
// per process drains the backlog. The workflows of the entries then find them completed.
func (a *Activities) drainBacklog(ctx context.Context, key string) {
	if !a.drainLock.TryLock() {
		return
	}
	defer a.drainLock.Unlock()
	sender, err := parseSequence(key)
	if err != nil {
		return
	}
	since, err := a.Store.Journal.Now(ctx)
	for more := true; more && err == nil; {
		if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < ShortCallTimeout {
			return
		}
		var claimed []journal.ClaimResult
		if claimed, err = a.Store.Journal.ClaimBacklog(ctx, since, drainConcurrency, sender); err == nil {
			a.attemptAll(ctx, claimed)
		}
		wait, _ := a.ODL.BreakerWait()
		more = len(claimed) > 0 && wait == 0
	}
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("draining the journal backlog failed; each entry retries in its own workflow", "error", err)
	}
}

// attemptAll makes one attempt at each claimed entry, even if ctx is cancelled meanwhile.
func (a *Activities) attemptAll(ctx context.Context, claimed []journal.ClaimResult) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShortCallTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range claimed {
		all.Go(func() {
			_, _, err := a.attemptEntry(ctx, t, a.Store.Journal.SaveSharedOutcome)
			if err != nil && activity.IsActivity(ctx) {
				activity.GetLogger(ctx).Warn("entry of the backlog failed; its own workflow retries", "entry", t.Entry.Seq, "error", err)
			}
		})
	}
	all.Wait()
}
