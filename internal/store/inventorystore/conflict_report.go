package inventorystore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// maxConflictRows is the maximum number of rows of generation conflicts that TrimConflicts leaves.
const maxConflictRows = 50_000

// Conflicts says how many writes of one kind all processes have refused because another writer had changed
// the generation of a provider or a consumer.
type Conflicts struct {
	inventory.Object
	Name   string // of a provider; empty: the provider does not exist, or the object is a consumer
	Known  bool   // the object exists, or is a consumer with a generation history
	Cause  inventory.Cause
	Recent int64 // writes that were refused in the last 24 hours
	All    int64 // writes that were refused since the oldest conflicts that are kept
	LastAt time.Time
}

// Conflicts returns the objects and kinds of writes with the most conflicts in the last 24 hours, and then
// those with the most conflicts at all, together at most `limit`.
func (s *Store) Conflicts(ctx context.Context, limit int) ([]Conflicts, error) {
	all, err := db.QueryAll(ctx, s.db, func(row pgx.CollectableRow) (c Conflicts, err error) {
		err = row.Scan(&c.Type, &c.UUID, &c.Name, &c.Known, &c.Cause, &c.Recent, &c.All, &c.LastAt)
		return c, err
	}, `
		select object_type, object_id, coalesce(p.name, ''),
			p.id is not null or object_type = 'consumer' and (
				exists (select from consumer where uuid = object_id) or exists (select from generation_change where consumer = object_id)),
			cause, recent, writes, last_at
		from (
			select object_type, object_id, cause,
				coalesce(sum(writes) filter (where hour > clock_timestamp() - interval '24 hours'), 0)::bigint as recent,
				sum(writes)::bigint as writes, max(last_at) as last_at
			from generation_conflict
			group by object_type, object_id, cause
			order by recent desc, writes desc, last_at desc, object_id, cause
			limit $1) most
		left join provider p on object_type = 'provider' and p.uuid = object_id
		order by recent desc, writes desc, last_at desc, object_id, cause`, limit)
	if err != nil {
		return nil, fmt.Errorf("list generation conflicts: %w", err)
	}
	return all, nil
}

// TrimConflicts deletes the generation conflicts that exceed the retention of the generation history, and
// those that exceed maxConflictRows, the oldest first.
func (s *Store) TrimConflicts(ctx context.Context, keep Retention) error {
	rows := int64(maxConflictRows)
	if keep.Rows > 0 {
		rows = min(rows, keep.Rows)
	}
	_, err := s.db.Exec(ctx, `
		delete from generation_conflict
		where ctid = any (array(
			select ctid
			from generation_conflict
			where $1::bigint > 0 and last_at < clock_timestamp() - $1 * interval '1 microsecond'
				or last_at <= (select last_at from generation_conflict order by last_at desc offset $2 limit 1)
			for update skip locked))`, keep.Age.Microseconds(), rows)
	if err != nil {
		return fmt.Errorf("trim the generation conflicts: %w", err)
	}
	return nil
}
