package operator

import (
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/store/outbox"
)

// projection is the JSON format of the last comparison of a projection with the rows. The counts that do not belong to a projection are
// missing.
type projection struct {
	Name        string     `json:"name"`
	ComparedAt  *time.Time `json:"compared_at"` // null: no comparison has ended yet
	Rows        int64      `json:"rows"`
	Unattended  *int64     `json:"unattended,omitempty"`
	Orphans     *int64     `json:"orphans,omitempty"`
	LateSeconds *float64   `json:"late_seconds,omitempty"`
	Different   *int64     `json:"different,omitempty"`
	Examples    []string   `json:"examples"`
}

// projections lists the projections of the rows that are in Temporal, each with the result of its last comparison.
func projections(s *outbox.Store) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		found, err := s.Projections(r.Context())
		if err != nil {
			return 0, nil, err
		}
		late, err := s.Late(r.Context())
		if err != nil {
			return 0, nil, err
		}
		list := make([]projection, len(found))
		for i, p := range found {
			list[i] = projection{Name: p.Name, ComparedAt: p.ComparedAt, Rows: p.Compared, Examples: p.Examples}
			if p.Name == outbox.Executions {
				seconds := late.Seconds()
				list[i].Unattended, list[i].Orphans, list[i].LateSeconds = &p.Unattended, &p.Orphans, &seconds
			} else {
				list[i].Different = &p.Different
			}
		}
		return http.StatusOK, map[string]any{"projections": list}, nil
	}
}
