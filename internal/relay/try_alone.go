package relay

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"berth/internal/contract"
)

const (
	// tryAloneBatch is the number of notes that are tried without Temporal at the same time.
	tryAloneBatch = 8
	// tryAloneTimeout limits an attempt without Temporal.
	tryAloneTimeout = 15 * time.Second
)

// requestTryAlone makes tryAloneLoop try the due notes without Temporal.
func (r *Relay) requestTryAlone() {
	select {
	case r.alone <- struct{}{}:
	default:
	}
}

// tryAloneLoop tries notes without Temporal on request, until ctx ends.
func (r *Relay) tryAloneLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.alone:
			if err := r.TryWithoutTemporal(ctx); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "delivery without Temporal failed", "error", err)
			}
		}
	}
}

// TryWithoutTemporal does the work of each waiting note whose workflow type is in Options.WithoutTemporal, once for each nudge. The notes stay in
// the outbox, so that the workflow finds out later whether work is left. Nova and the agents thus do not wait for the end of an outage of
// Temporal.
func (r *Relay) TryWithoutTemporal(ctx context.Context) error {
	workflows := slices.Sorted(maps.Keys(r.WithoutTemporal))
	for len(workflows) > 0 && ctx.Err() == nil {
		notes, err := r.Store.ClaimUntried(ctx, workflows, tryAloneBatch)
		if err != nil || len(notes) == 0 {
			return err
		}
		done := make(chan struct{})
		for _, n := range notes {
			go func() {
				defer func() { done <- struct{}{} }()
				limited, cancel := context.WithTimeout(ctx, tryAloneTimeout)
				defer cancel()
				if err := r.WithoutTemporal[n.Workflow](limited, contract.Key(n.ID)); err != nil && ctx.Err() == nil {
					slog.WarnContext(ctx, "an attempt without Temporal failed; the workflow repeats it later", "workflow", n.ID, "error", err)
				}
			}()
		}
		for range notes {
			<-done
		}
	}
	return nil
}
