package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// RecordConsumers gives up to limit consumers of which only allocations are known an owner, and tells how many are
// left. Their generations stay, so that who has read one may go on. Those that somebody is writing are left to him,
// who records them himself, or to the next call.
func (s *Store) RecordConsumers(ctx context.Context, owner inventory.Owner, limit int) (recorded, left int64, err error) {
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
