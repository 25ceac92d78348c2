package diagnosis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/starter/cli"
)

const (
	// maxComparisonAge is the age from which on doctor reports FAIL for the last comparison of a projection
	// with the rows.
	maxComparisonAge = 30 * time.Minute
	// maxLateness is the longest time that due work may be late without a FAIL of doctor.
	maxLateness = time.Minute
)

// projection is the result of the last comparison of rows with data that is derived from them, such as
// Temporal's executions.
type projection struct {
	Name       string     `json:"name"`
	ComparedAt *time.Time `json:"compared_at"`
	Rows       int64      `json:"rows"`
	Unattended int64      `json:"unattended"` // rows without an execution
	Orphans    int64      `json:"orphans"`    // executions without a row
	Different  int64      `json:"different"`
	Late       float64    `json:"late_seconds"`
	Examples   []string   `json:"examples"`
}

// checkProjection makes the check of the projection with the given name.
func checkProjection(name string) func(context.Context, *cli.Session) (string, error) {
	return func(ctx context.Context, s *cli.Session) (string, error) {
		var o struct{ Projections []projection }
		if err := readAPI(ctx, s, "/operator/v1/projections", &o); err != nil {
			return "", err
		}
		at := slices.IndexFunc(o.Projections, func(p projection) bool { return p.Name == name })
		if at < 0 {
			return "", fmt.Errorf("%w: the API does not compare %s with the rows", errNotConfigured, name)
		}
		p := o.Projections[at]
		differences := p.differences()
		age := time.Duration(0)
		if p.ComparedAt != nil {
			age = s.Now().Sub(*p.ComparedAt).Round(time.Second)
		}
		switch {
		case len(differences) > 0:
			what := strings.Join(differences, ", ")
			if len(p.Examples) > 0 {
				what += ": " + strings.Join(p.Examples, ", ")
			}
			return "", cli.Errorf(
				cli.ExitOther,
				"berth repairs this within minutes while processes with the roles relay and temporal run; `starter why OBJECT` explains an object.",
				"%s",
				what,
			)
		case p.ComparedAt == nil:
			return "", fmt.Errorf("%w: berth has not compared %s with the rows yet", errNotConfigured, name)
		case age > maxComparisonAge:
			return "", cli.Errorf(
				cli.ExitUnavailable,
				"Start a process with the role relay. The checks Temporal and namespace show why no comparison runs.",
				"the last comparison with the rows was %s ago",
				age,
			)
		default:
			return fmt.Sprintf("equal to %d rows, compared %s ago", p.Rows, max(age, 0)), nil
		}
	}
}

// different says what the count `different` of a projection counts.
var different = map[string]string{
	"search attributes": "executions have outdated attributes",
	"usage":             "inventories had a usage that differs from their allocations",
}

// differences describes each kind of difference between a projection and the rows.
func (p projection) differences() []string {
	var found []string
	for _, d := range []struct {
		n    int64
		what string
	}{
		{p.Unattended, "rows have no execution"},
		{p.Orphans, "executions have no row"},
		{p.Different, different[p.Name]},
	} {
		if d.n > 0 {
			found = append(found, fmt.Sprintf("%d %s", d.n, d.what))
		}
	}
	if late := time.Duration(p.Late * float64(time.Second)).Round(time.Second); late > maxLateness {
		found = append(found, fmt.Sprintf("due work is %s late", late))
	}
	return found
}
