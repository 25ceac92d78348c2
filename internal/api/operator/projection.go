package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/outbox"
)

// projection is the JSON format of the last comparison of a projection with the rows of the database. A
// projection is what berth makes from these rows outside the database: workflow executions and search
// attributes in Temporal, and objects at the controller. The JSON of a projection omits the counts that do
// not apply to the projection.
type projection struct {
	Name        string     `json:"name"`
	ComparedAt  *time.Time `json:"compared_at"` // null: no comparison has ended yet
	Rows        int64      `json:"rows"`
	Unattended  *int64     `json:"unattended,omitempty"`
	Orphans     *int64     `json:"orphans,omitempty"`
	LateSeconds *float64   `json:"late_seconds,omitempty"`
	Missing     *int64     `json:"missing,omitempty"`
	Extra       *int64     `json:"extra,omitempty"`
	Different   *int64     `json:"different,omitempty"`
	Examples    []string   `json:"examples"`
}

// projectionList is the JSON format of the list of projections.
type projectionList struct {
	Namespace   *boundNamespace `json:"namespace"` // null: the database is bound to none yet
	Projections []projection    `json:"projections"`
	// Maintenance lists the parts of the periodic maintenance.
	Maintenance []maintenancePart `json:"maintenance"`
}

// maintenancePart is the JSON format of a part of the periodic maintenance.
type maintenancePart struct {
	Part        string    `json:"part"`
	CompletedAt time.Time `json:"completed_at"`
}

// boundNamespace is the JSON format of the Temporal namespace to which the database is bound.
type boundNamespace struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	BoundAt time.Time `json:"bound_at"`
}

// projections lists the projections in Temporal and at the controller, each with the result of its last
// comparison, and the parts of the maintenance.
func projections(s *outbox.Store, m *mirrorstore.Store) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		found, err := s.Projections(r.Context())
		if err != nil {
			return 0, nil, err
		}
		late, err := s.Late(r.Context())
		if err != nil {
			return 0, nil, err
		}
		controller, err := controllerProjection(r.Context(), m)
		if err != nil {
			return 0, nil, err
		}
		list := make([]projection, len(found), len(found)+1)
		for i, p := range found {
			list[i] = projection{
				Name:       p.Name,
				ComparedAt: p.ComparedAt,
				Rows:       p.Compared,
				Examples:   p.Examples,
			}
			if p.Name == outbox.Executions {
				seconds := late.Seconds()
				list[i].Unattended, list[i].Orphans, list[i].LateSeconds = &p.Unattended, &p.Orphans, &seconds
			} else {
				list[i].Different = &p.Different
			}
		}
		bound, err := s.BoundNamespace(r.Context())
		if err != nil {
			return 0, nil, err
		}
		parts, err := s.Maintenance(r.Context())
		if err != nil {
			return 0, nil, err
		}
		answer := projectionList{
			Projections: append(list, controller),
			Maintenance: make([]maintenancePart, len(parts)),
		}
		for i, p := range parts {
			answer.Maintenance[i] = maintenancePart(p)
		}
		if bound.ID != "" {
			answer.Namespace = &boundNamespace{bound.ID, bound.Name, bound.BoundAt}
		}
		return http.StatusOK, answer, nil
	}
}

// maxExamples is the maximum number of differences at the controller that are listed.
const maxExamples = 5

// controllerProjection returns the result of the last audit of the controller.
func controllerProjection(ctx context.Context, m *mirrorstore.Store) (projection, error) {
	audit, err := m.LastDone(ctx, contract.KeyAudit)
	if err != nil {
		return projection{}, err
	}
	var rows, missing, different, extra int64
	for _, t := range audit.Progress {
		rows += int64(t.Total)
		missing += int64(t.Missing)
		different += int64(t.Different)
		extra += int64(t.Extra)
	}
	p := projection{
		Name:       "controller",
		ComparedAt: audit.FinishedAt,
		Rows:       rows,
		Missing:    &missing,
		Extra:      &extra,
		Different:  &different,
		Examples:   []string{},
	}
	found, err := m.Findings(ctx, audit.ID, journal.Ref{}, maxExamples)
	for _, f := range found {
		p.Examples = append(p.Examples, fmt.Sprintf("%s %s/%s", f.Kind, f.Object.Type, f.Object.ID))
	}
	return p, err
}
