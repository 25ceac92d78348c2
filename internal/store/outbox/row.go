package outbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/store/db"
)

// Row is a row that must have a workflow.
type Row struct {
	Attributes contract.Attributes // search attributes that the row's workflow should have
	HasNote    bool                // a note of the row waits for its delivery
}

// CountRows returns, by workflow type, the number of rows that must have a workflow.
func (s *Store) CountRows(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	err := s.db.InBatch(ctx, func(batch *pgx.Batch) {
		for _, of := range s.sources {
			batch.Queue(`select count(*) from (` + of.Rows + `) as r (id, summary, attributes)`).
				QueryRow(func(row pgx.Row) error {
					n := 0
					err := row.Scan(&n)
					counts[of.Workflow] += n
					return err
				})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("count the rows that must have a workflow: %w", err)
	}
	return counts, nil
}

// Rows returns, by workflow ID, the rows that must have a workflow of one of the given types and whose
// workflow ID has the prefix.
func (s *Store) Rows(ctx context.Context, workflows []string, prefix string) (map[string]Row, error) {
	return s.rows(ctx, workflows, `starts_with(r.id, $1)`, prefix)
}

// RowsByWorkflowID returns, by workflow ID, the rows with the given workflow IDs. The result contains no
// workflow ID without a row.
func (s *Store) RowsByWorkflowID(ctx context.Context, ids []string) (map[string]Row, error) {
	return s.rows(ctx, contract.EntityWorkflows, `r.id = any($1)`, db.OrEmpty(ids))
}

func (s *Store) rows(
	ctx context.Context,
	workflows []string,
	condition string,
	arg any,
) (map[string]Row, error) {
	found := map[string]Row{}
	for _, of := range s.sources {
		if !slices.Contains(workflows, of.Workflow) {
			continue
		}
		var id string
		var row Row
		rows, err := s.db.Query(ctx, `
			select r.id, r.attributes, `+Exists("r.id")+`
			from (`+of.Rows+`) as r (id, summary, attributes)
			where `+condition, arg)
		if err == nil {
			_, err = pgx.ForEachRow(rows, []any{&id, &row.Attributes, &row.HasNote}, func() error {
				found[id] = row
				row = Row{}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("read the rows that must have a workflow: %w", err)
		}
	}
	return found, nil
}
