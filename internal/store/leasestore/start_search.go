package leasestore

import (
	"cmp"
	"context"
	"time"

	"berth/internal/lease"
)

// defaultPlanBudget is the default of Config.PlanBudget.
const defaultPlanBudget = time.Second

// startSearch limits the time of the search for the earliest start of one lease.
type startSearch struct {
	begin  time.Time
	budget time.Duration
}

func newStartSearch(budget time.Duration) *startSearch {
	return &startSearch{begin: time.Now(), budget: cmp.Or(budget, defaultPlanBudget)}
}

// proceed returns a fault if the budget is used up, so that the search does not try the next start. A nil
// search has no budget; proceed then returns only the error of ctx.
func (s *startSearch) proceed(ctx context.Context, next time.Time) error {
	if err := ctx.Err(); err != nil || s == nil || time.Since(s.begin) < s.budget {
		return err
	}
	return lease.Faultf(lease.SearchTooLong,
		"The search for a start has taken %s, and no start before %s has enough resources. Search from this start.",
		s.budget, next.UTC().Format(time.RFC3339))
}
