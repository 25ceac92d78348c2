package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// Names of the projections. A projection is data that is derived from rows. Executions and search attributes
// are in Temporal, and are derived from the rows that must have a workflow. The usage of inventories is
// derived from the allocations.
const (
	Executions       = "executions"
	SearchAttributes = "search attributes"
	Usage            = "usage"
)

// Projection contains the result of the last comparison of one projection with its rows.
type Projection struct {
	Name       string
	ComparedAt *time.Time // end of the comparison; nil: no comparison has ended yet
	Compared   int64      // number of rows that were compared
	Unattended int64      // rows without an open execution; the workflow of each such row was restarted
	Orphans    int64      // open executions without a row; each such execution was nudged
	// open executions whose search attributes differ from the row, or inventories with a wrong usage
	Different int64
	Examples  []string // workflow IDs or inventories of some differences
}

// SaveComparison stores the result of a comparison that has just ended.
func (s *Store) SaveComparison(ctx context.Context, p Projection) error {
	_, err := s.db.Exec(ctx, `
		insert into projection (name, compared_at, compared, unattended, orphans, different, examples)
		values ($1, now(), $2, $3, $4, $5, $6)
		on conflict (name) do update
		set compared_at = excluded.compared_at, compared = excluded.compared, unattended = excluded.unattended, orphans = excluded.orphans,
			different = excluded.different, examples = excluded.examples`,
		p.Name, p.Compared, p.Unattended, p.Orphans, p.Different, db.OrEmpty(p.Examples))
	if err != nil {
		return fmt.Errorf("save the comparison of the %s: %w", p.Name, err)
	}
	return nil
}

// Projections returns the result of the last comparison of each projection that is in Temporal or in the
// database.
func (s *Store) Projections(ctx context.Context) ([]Projection, error) {
	found, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[Projection], `
		select n.name, p.compared_at, coalesce(p.compared, 0), coalesce(p.unattended, 0), coalesce(p.orphans, 0), coalesce(p.different, 0),
			coalesce(p.examples, '{}')
		from unnest($1::text[]) with ordinality as n (name, place)
		left join projection p using (name)
		order by n.place`, []string{Executions, SearchAttributes, Usage})
	if err != nil {
		return nil, fmt.Errorf("read the results of the comparisons with the rows: %w", err)
	}
	return found, nil
}

// lateRows returns the SQL that selects, for each row with a due step, the workflow ID and the time since
// which the step is due.
func (s *Store) lateRows() string {
	sql := `select null::text, null::timestamptz where false`
	for _, of := range s.sources {
		if of.Due != "" {
			sql += ` union all (` + of.Due + `)`
		}
	}
	return `(` + sql + `) as r (id, since)`
}

// Late returns how late the most overdue step of all rows is; 0: no step is overdue.
func (s *Store) Late(ctx context.Context) (time.Duration, error) {
	var late time.Duration
	err := s.db.QueryRow(ctx, `select coalesce(now() - min(r.since), interval '0') from `+s.lateRows()).
		Scan(&late)
	if err != nil {
		return 0, fmt.Errorf("read how overdue the steps of the rows are: %w", err)
	}
	return late, nil
}

// LateRows returns the workflow IDs of at most `limit` rows for which a step is overdue for longer than
// `late`, the most overdue row first. The result does not contain rows whose note waits, nor the IDs in
// `except`.
func (s *Store) LateRows(
	ctx context.Context,
	late time.Duration,
	except []string,
	limit int,
) ([]string, error) {
	ids, err := db.QueryAll(ctx, s.db, pgx.RowTo[string], `
		select r.id
		from `+s.lateRows()+`
		where r.since < now() - $1::interval and r.id <> all($2) and not `+Exists("r.id")+`
		order by r.since, r.id
		limit $3`, late, db.OrEmpty(except), limit)
	if err != nil {
		return nil, fmt.Errorf("read the rows for which a step is overdue: %w", err)
	}
	return ids, nil
}
