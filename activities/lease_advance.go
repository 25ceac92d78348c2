package activities

import (
	"context"
	"time"
)

// advanceWait is how long one call waits for the sweep of due leases. It is shorter than workflows.LocalDatabaseTimeout.
const advanceWait = 2 * time.Second

// AdvanceLeases waits until the given time, then starts and ends all leases that are due. Concurrent calls share one sweep.
// It returns how many leases the sweep has advanced so far; a longer sweep continues without its callers.
func (a *Activities) AdvanceLeases(ctx context.Context, at time.Time) (int, error) {
	left, err := a.Store.Lease.Until(ctx, at)
	if err != nil {
		return 0, classify(err)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(max(left, time.Until(at))):
	}
	background := context.WithoutCancel(ctx)
	sweep := a.leaseSweeper.Join(func() (completed int, found bool, err error) {
		begun, finished, err := a.Store.Lease.AdvanceLeases(background, a.backend())
		return finished, begun > 0, err
	})
	select {
	case <-sweep.Done():
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(advanceWait):
	}
	advanced, err := sweep.Progress()
	return advanced, classify(err)
}
