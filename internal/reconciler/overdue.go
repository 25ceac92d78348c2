package reconciler

import (
	"context"
	"log/slog"
	"time"

	"berth/internal/store/reportstore"
)

// overdueInterval is the interval at which the reconciler looks for objects that should have made progress.
const overdueInterval = 15 * time.Second

// overdueLog logs each object that should have made progress by now once, when it finds the object, and no
// more than the worst objects of each kind.
type overdueLog struct {
	find   func(context.Context) ([]reportstore.OverdueObject, error)
	logged map[string]bool // the objects of the last search that are in the log
}

func newOverdueLog(find func(context.Context) ([]reportstore.OverdueObject, error)) *overdueLog {
	return &overdueLog{find: find}
}

// search logs the objects that are overdue and were not at the last search. An object that becomes overdue
// again is logged again.
func (l *overdueLog) search(ctx context.Context) error {
	found, err := l.find(ctx)
	if err != nil {
		return err
	}
	now := make(map[string]bool, len(found))
	for _, o := range found {
		key := o.Kind + " " + o.Object
		now[key] = true
		if !l.logged[key] {
			slog.WarnContext(
				ctx,
				"object is overdue",
				"kind", o.Kind, "object", o.Object, "reason", o.Reason,
				"due_at", o.DueAt.UTC().Format(time.RFC3339), "overdue", o.For.Round(time.Second),
				"overdue_of_kind", o.Count,
			)
		}
	}
	l.logged = now
	return nil
}
