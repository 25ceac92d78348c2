package console

import (
	"context"
	"fmt"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/outbox"
)

// projectionsView is the content of the page of the projections.
type projectionsView struct {
	Projections []projection
	Late        string // how late the most overdue step is; empty: no step is overdue
}

// projection is what berth makes from its rows outside the database, with the result of the last comparison
// with the rows.
type projection struct {
	Name, Hint string
	Health     string // in step, drift, or not compared yet
	ComparedAt *time.Time
	Rows       int64
	Counts     []fact
	Examples   []string
}

// maxExamples is the maximum number of differences at the controller that the page lists.
const maxExamples = 5

// projections reads the results of the last comparisons.
func (c *handler) projections(ctx context.Context, _ query) (any, error) {
	found, err := c.Outbox.Projections(ctx)
	if err != nil {
		return nil, err
	}
	late, err := c.Outbox.Late(ctx)
	if err != nil {
		return nil, err
	}
	v := projectionsView{}
	if late >= time.Minute {
		v.Late = age(late)
	}
	for _, p := range found {
		out := projection{
			Name:       "Workflow executions in Temporal",
			Hint:       "Each row that needs a workflow has one open execution.",
			ComparedAt: p.ComparedAt,
			Rows:       p.Compared,
			Counts: []fact{
				count("rows without an execution", p.Unattended),
				count("executions without a row", p.Orphans),
			},
			Examples: p.Examples,
		}
		switch p.Name {
		case outbox.Usage:
			out.Name, out.Hint = "Usage of inventories", "The usage of each inventory is the sum of the allocations from it."
			out.Counts = []fact{count("inventories with another usage", p.Different)}
		case outbox.SearchAttributes:
			out.Name, out.Hint = "Search attributes in Temporal", "The search attributes of each open execution have the values of its row."
			out.Counts = []fact{count("executions with other values", p.Different)}
		}
		out.Health = health(p.ComparedAt, p.Unattended+p.Orphans+p.Different)
		v.Projections = append(v.Projections, out)
	}
	controller, err := c.controllerProjection(ctx)
	v.Projections = append(v.Projections, controller)
	return v, err
}

// controllerProjection returns the result of the last audit of the controller.
func (c *handler) controllerProjection(ctx context.Context) (projection, error) {
	audit, err := c.Mirror.LastDone(ctx, contract.KeyAudit)
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
		Name:       "Objects at the controller",
		Hint:       "OpenDaylight has the same objects as the rows; the last audit has compared them.",
		ComparedAt: audit.FinishedAt,
		Rows:       rows,
		Counts: []fact{
			count("missing objects", missing),
			count("different objects", different),
			count("extra objects", extra),
		},
		Health: health(audit.FinishedAt, missing+different+extra),
	}
	findings, err := c.Mirror.Findings(ctx, audit.ID, journal.Ref{}, maxExamples)
	for _, f := range findings {
		p.Examples = append(p.Examples, fmt.Sprintf("%s %s/%s", f.Kind, f.Object.Type, f.Object.ID))
	}
	return p, err
}

func count(name string, n int64) fact { return fact{Name: name, Value: fmt.Sprint(n)} }

// health says in one or two words how a projection is.
func health(comparedAt *time.Time, differences int64) string {
	switch {
	case comparedAt == nil:
		return "not compared yet"
	case differences > 0:
		return "drift"
	default:
		return "in step"
	}
}
