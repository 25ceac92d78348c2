package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/journal"
)

// abreast is how many of the entries that have gathered are sent at once.
const abreast = 32

// bringWaiting mirrors what has gathered while the controller was away, oldest first, as far as it comes: each would
// otherwise come back by itself, some time later, in a workflow task of its own. One in a process is enough. Their
// workflows find them completed.
func (a *Activities) bringWaiting(ctx context.Context, key string) {
	if !a.bringing.TryLock() {
		return
	}
	defer a.bringing.Unlock()
	carrier, err := seqOf(key)
	if err != nil {
		return
	}
	since, err := a.Store.Now(ctx)
	for more := true; more && err == nil; {
		if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < BriefCall {
			return
		}
		var takes []journal.Take
		if takes, err = a.Store.TakeWaiting(ctx, since, abreast, carrier); err == nil {
			a.sendAbreast(ctx, takes)
		}
		resting, _ := a.ODL.BreakerWait()
		more = len(takes) > 0 && resting == 0
	}
	if err != nil && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("What has gathered is left to its own workflows", "error", err)
	}
}

// sendAbreast makes an attempt at each, even if it is called off meanwhile.
func (a *Activities) sendAbreast(ctx context.Context, takes []journal.Take) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), BriefCall)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range takes {
		all.Go(func() {
			_, _, err := a.attempt(ctx, t, &train{inLine: true})
			if err != nil && activity.IsActivity(ctx) {
				activity.GetLogger(ctx).Warn("An entry that was brought along is left to its own workflow", "entry", t.Entry.Seq, "error", err)
			}
		})
	}
	all.Wait()
}
