package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"berth/internal/config"
)

// takeoverInterval is how often a process searches for lease steps that a killed process has begun and not
// finished.
const takeoverInterval = 500 * time.Millisecond

// startLeaseTakeover runs a loop that finishes the lease steps that a killed process has begun; the loop ends
// when stop is called. A step is, for example, the start of a lease's reservations at Nova and Neutron. The
// loop does not wait for Temporal, because Temporal notices the death of a process only after five to ten
// seconds. If the process does not have the role temporal, startLeaseTakeover does nothing.
func (a *App) startLeaseTakeover(ctx context.Context) (stop func()) {
	if !a.hasRole(config.Temporal) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(takeoverInterval)
		defer tick.Stop()
		failing := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			n, err := a.activities.TakeOverLeases(ctx)
			if n > 0 {
				slog.InfoContext(ctx, "finished steps of leases that another process had begun", "steps", n)
			}
			if err != nil && ctx.Err() == nil && !failing {
				slog.WarnContext(ctx, "taking over steps of leases failed", "error", err)
			}
			failing = err != nil
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}
