package reconciler

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// lateAfter is how long a step may be overdue before the reconciler nudges the workflow of the row.
	lateAfter = 3 * time.Second
	// lateRepeat is the time after which the reconciler nudges the workflow of a row again if the step is
	// still overdue.
	lateRepeat = 30 * time.Second
	// maxLate is the maximum number of workflows that one search nudges. A few nudges are enough, because the
	// workflow of one lease performs the steps of all leases that are due. maxLateKnown is the maximum number
	// of nudged rows that the reconciler remembers in order not to nudge their workflows again before
	// lateRepeat.
	maxLate      = 10
	maxLateKnown = 1000
)

// lateSearch finds rows for which a step is overdue, for example leases that should have started. The
// workflow of such a row may be lost, or may not have learned the time of the step. lateSearch does not ask
// Temporal which workflows run, because a nudge of a running workflow is harmless.
type lateSearch struct {
	*Reconciler
	nudged map[string]time.Time // when the workflow of a row was nudged, by workflow ID
}

func newLateSearch(r *Reconciler) *lateSearch {
	return &lateSearch{Reconciler: r, nudged: map[string]time.Time{}}
}

// nudge nudges the workflows of rows for which a step is overdue. If such a workflow does not run, the nudge
// starts it.
func (s *lateSearch) nudge(ctx context.Context) error {
	now := time.Now()
	maps.DeleteFunc(s.nudged, func(_ string, at time.Time) bool { return now.Sub(at) > lateRepeat })
	if len(s.nudged) >= maxLateKnown {
		return nil
	}
	ids, err := s.Store.LateRows(ctx, lateAfter, slices.Collect(maps.Keys(s.nudged)), maxLate)
	if err != nil {
		return err
	}
	if err := s.restart(ctx, "late", ids); err != nil {
		return err
	}
	for _, id := range ids {
		s.nudged[id] = now
	}
	return nil
}
