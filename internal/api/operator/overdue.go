package operator

import (
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/store/reportstore"
)

// overdueKind is the JSON format of the overdue objects of one kind.
type overdueKind struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	// more objects may be overdue, because berth counts only so many of each kind
	AtLeast bool `json:"at_least"`
	// the objects that are overdue for the longest time, the worst first
	Worst []overdueObject `json:"worst"`
}

// overdueObject is the JSON format of an object that should have made progress by now.
type overdueObject struct {
	Object  string    `json:"object"`
	Reason  string    `json:"reason"`
	DueAt   time.Time `json:"due_at"`
	Seconds float64   `json:"overdue_seconds"`
}

// overdue lists what should have made progress by now, by kind.
func overdue(s *reportstore.Store) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		found, err := s.Overdue(r.Context())
		if err != nil {
			return 0, nil, err
		}
		kinds := []overdueKind{}
		for _, o := range found {
			if n := len(kinds); n == 0 || kinds[n-1].Kind != o.Kind {
				kinds = append(
					kinds,
					overdueKind{Kind: o.Kind, Count: o.Count, AtLeast: o.Count >= reportstore.MaxCounted},
				)
			}
			last := &kinds[len(kinds)-1]
			last.Worst = append(last.Worst, overdueObject{o.Object, o.Reason, o.DueAt, o.For.Seconds()})
		}
		return http.StatusOK, map[string]any{"overdue": kinds}, nil
	}
}
