package reconciler

import (
	"context"
	"log/slog"
	"time"

	"berth/internal/store/outbox"
)

// usageInterval is the minimum time between two comparisons of the usage of all inventories with the
// allocations.
const usageInterval = time.Minute

// repairUsage compares the usage of all inventories with the allocations once, and returns the pause before
// the next comparison.
func (r *Reconciler) repairUsage(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	compared, corrected, err := r.RepairUsage(ctx)
	if err != nil {
		return usageInterval, err
	}
	p := outbox.Projection{Name: outbox.Usage, Compared: compared, Different: int64(len(corrected))}
	addExamples(&p, corrected)
	pause := usageInterval
	if p.Different > 0 {
		pause = repeatedInterval
		slog.WarnContext(ctx, "usage of inventories differed from the allocations",
			"inventories", p.Different, "examples", p.Examples)
	}
	return max(pause, comparisonShare*time.Since(begin)), r.Store.SaveComparison(ctx, p)
}
