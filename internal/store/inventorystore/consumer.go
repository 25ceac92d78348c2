package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
	"berth/internal/tracing"
)

// DeleteAllocations deletes a consumer and all its allocations, whatever the generation of the consumer is.
// DeleteAllocations returns db.ErrNotFound if the consumer does not exist.
func (s *Store) DeleteAllocations(ctx context.Context, consumer string) error {
	// The lock of the consumer is a statement of its own: the next statement then sees the allocations that
	// the previous holder of the lock has written. The next statement does nothing if this one has locked no
	// consumer: a consumer that has appeared in between would be locked after its providers. The count in the
	// next statement, which always suffices, makes PostgreSQL lock all providers before it deletes the
	// consumer.
	const lock = `
		select set_config('berth.locked', uuid, true)
		from (select uuid from consumer where uuid = $1 for update) as locked`
	const statement = `
		with locked_provider as (
			select id
			from provider
			where id = any (array(
				select provider_id
				from allocation
				where consumer_id = (select id from consumer where uuid = $1 and uuid = current_setting('berth.locked', true))))
			order by id
			for no key update), deleted as (
			delete from consumer
			where uuid = $1 and uuid = current_setting('berth.locked', true) and (select count(*) from locked_provider) >= 0
			returning uuid, generation), recorded as (
			insert into generation_change (actor, request_id, cause, consumer, consumer_from)
			select $2, nullif($4, ''), $3, uuid, generation
			from deleted)
		select ` + db.MarkDeleted + `
		from deleted`
	var tag pgconn.CommandTag
	batch := &pgx.Batch{}
	batch.Queue(lock, consumer)
	batch.Queue(statement, consumer, db.Actor(ctx), inventory.CauseAllocations, tracing.RequestIDsOf(ctx).ID).
		Exec(func(t pgconn.CommandTag) error {
			tag = t
			return nil
		})
	if recorder := db.RecorderOf(ctx); recorder != nil {
		recorder.QueueRecordIfMarked(batch, db.Change{Type: "consumer", ID: consumer})
	}
	err := s.db.TryBatch(ctx, batch)
	if err != nil {
		return fmt.Errorf("delete allocations of consumer %s: %w", consumer, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%w: no allocations of consumer %s", db.ErrNotFound, consumer)
	}
	return nil
}

// ConsumersAmong returns those of the UUIDs that are the UUIDs of consumers.
func (s *Store) ConsumersAmong(ctx context.Context, uuids []string) (map[string]bool, error) {
	found, err := db.QueryAll(ctx, s.db, pgx.RowTo[string],
		`select uuid from consumer where uuid = any($1)`, uuids)
	if err != nil {
		return nil, fmt.Errorf("find consumers: %w", err)
	}
	consumers := map[string]bool{}
	for _, id := range found {
		consumers[id] = true
	}
	return consumers, nil
}
