package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// RecordConsumers sets the project and user of at most `limit` consumers that have allocations but no project
// and user. RecordConsumers returns the number of changed consumers and the number of consumers that still
// have no project and user. RecordConsumers does not change the generation of a consumer, so that a writer
// that has already read the consumer can still write its allocations. RecordConsumers skips each consumer
// that another transaction has locked.
func (s *Store) RecordConsumers(
	ctx context.Context,
	owner inventory.Owner,
	limit int,
) (recorded, left int64, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`
			update consumer
			set project = $1, user_id = $2, updated_at = now()
			where id = any (array(
				select id
				from consumer
				where project is null
				order by id
				limit $3
				for no key update skip locked))`, owner.Project, owner.User, limit).
			Exec(func(tag pgconn.CommandTag) error {
				recorded = tag.RowsAffected()
				return nil
			})
		batch.Queue(`select count(*) from consumer where project is null`).
			QueryRow(func(row pgx.Row) error { return row.Scan(&left) })
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return 0, 0, fmt.Errorf("record consumers: %w", err)
	}
	return recorded, left, nil
}
