package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// allocationStatement is a SQL statement that allocates amounts of one or more resource classes of one
// provider to a new consumer. allocationStatement allocates either all requested amounts or none.
// allocationStatement allocates the amounts only if three conditions hold: the consumer does not exist, the
// amounts fit the inventories in the snapshot of the statement, and the provider, once locked, still has the
// same generation as in that snapshot. If the generation has changed, another transaction may have allocated
// from the provider, because every allocation increments the provider's generation. allocationStatement
// applies the same conditions to the amounts as inventory.CheckCapacity.
const allocationStatement = `
	with requested as (
		select p.id, p.uuid, p.generation, i.class_id, new.amount, new.position - 1 as position
		from provider p
		cross join unnest(@classes::text[], @amounts::integer[]) with ordinality as new (class, amount, position)
		join resource_class c on c.name = new.class
		join inventory i on i.provider_id = p.id and i.class_id = c.id
		where p.uuid = @provider
			and new.amount between i.min_unit and i.max_unit and new.amount % i.step_size = 0
			and i.used + new.amount <= (i.total - i.reserved) * i.allocation_ratio
	), updated_provider as (
		update provider p
		set generation = p.generation + 1, updated_at = now()
		from (
			select id, generation
			from requested
			group by id, generation
			having count(*) = cardinality(@classes)) as seen
		where p.id = seen.id and p.generation = seen.generation and not exists (select from consumer where uuid = @consumer)
		returning p.id, p.uuid, p.generation
	), new_consumer as (
		insert into consumer (uuid, project, user_id, type, generation)
		select @consumer, @project, @user, @type, 1
		from updated_provider
		returning id
	), new_allocation as (
		insert into allocation (consumer_id, provider_id, class_id, amount, position)
		select new_consumer.id, requested.id, requested.class_id, requested.amount, requested.position
		from new_consumer, requested
	)
	insert into generation_change (cause, actor, request_id, consumer, consumer_to, provider, provider_from, provider_to)
	select @cause, @actor, nullif(@request, ''), @consumer, 1, uuid, generation - 1, generation
	from updated_provider`

// replacementStatement is a SQL statement that replaces the allocations of an existing consumer by other
// amounts of the same resource classes of the same provider. replacementStatement writes only if the
// consumer, once locked, has the expected generation, which every change of its allocations increments; the
// other conditions are those of allocationStatement, without the current amounts of the consumer.
const replacementStatement = `
	with held as (
		select id
		from consumer
		where uuid = @consumer and generation = @generation
		for no key update
	), requested as (
		select p.id, p.uuid, p.generation, a.consumer_id, a.class_id, new.amount, new.position - 1 as position
		from held
		join allocation a on a.consumer_id = held.id
		join provider p on p.id = a.provider_id and p.uuid = @provider
		join inventory i on i.provider_id = a.provider_id and i.class_id = a.class_id
		join resource_class c on c.id = a.class_id
		join unnest(@classes::text[], @amounts::integer[]) with ordinality as new (class, amount, position) on new.class = c.name
		where new.amount between i.min_unit and i.max_unit and new.amount % i.step_size = 0
			and i.used - a.amount + new.amount <= (i.total - i.reserved) * i.allocation_ratio
	), updated_provider as (
		update provider p
		set generation = p.generation + 1, updated_at = now()
		from (
			select id, generation, consumer_id
			from requested
			group by id, generation, consumer_id
			having count(*) = cardinality(@classes)
				and count(*) = (select count(*) from allocation a where a.consumer_id = requested.consumer_id)) as seen
		where p.id = seen.id and p.generation = seen.generation
		returning p.id, p.uuid, p.generation, seen.consumer_id
	), updated_consumer as (
		update consumer
		set project = @project, user_id = @user, type = coalesce(@type, type), generation = consumer.generation + 1, updated_at = now()
		from updated_provider
		where consumer.id = updated_provider.consumer_id
	), updated_allocation as (
		update allocation a
		set amount = requested.amount, position = requested.position, created_at = now()
		from updated_provider, requested
		where a.consumer_id = requested.consumer_id and a.provider_id = requested.id and a.class_id = requested.class_id
	)
	insert into generation_change (cause, actor, request_id, consumer, consumer_from, consumer_to, provider, provider_from, provider_to)
	select @cause, @actor, nullif(@request, ''), @consumer, @generation, @generation + 1, uuid, generation - 1, generation
	from updated_provider`

// tryAllocationStatement runs a write that allocates from one provider to one consumer as one SQL statement.
// This is the most frequent kind of write. tryAllocationStatement reports whether the statement has written
// the allocations. If the statement has not written the allocations, the caller runs the write
// with runAllocationTx, which needs one more round trip to PostgreSQL and returns the reason if the write is
// not allowed. If the database is unavailable, for example because another session keeps the provider locked,
// tryAllocationStatement returns the error, because a second attempt would wait as long again.
func (s *Store) tryAllocationStatement(ctx context.Context, w *AllocationWrite) (done bool, err error) {
	if len(w.Writes) != 1 || w.Writes[0].Expect.AcceptsAny() {
		return false, nil
	}
	c := w.Writes[0]
	statement, shift := allocationStatement, inventory.GenerationShift{UUID: c.Consumer, To: new(int64(1))}
	if generation := c.Expect.Generation(); generation != nil {
		statement, shift.From, shift.To = replacementStatement, generation, new(*generation+1)
	}
	provider := w.providers()[0]
	keys := c.Keys()
	classes, amounts := make([]string, len(keys)), make([]int64, len(keys))
	for i, key := range keys {
		classes[i] = key.Class
		if amounts[i] = c.Allocations[provider][key.Class]; amounts[i] > inventory.MaxInt {
			return false, nil
		}
	}
	if w.recorder != nil { // the next statement of the batch writes an audit record
		statement += ` returning ` + db.MarkWritten
	}
	batch := &pgx.Batch{}
	batch.Queue(statement, pgx.NamedArgs{
		"provider":   provider,
		"classes":    classes,
		"amounts":    amounts,
		"consumer":   c.Consumer,
		"generation": c.Expect.Generation(),
		"project":    c.Project,
		"user":       c.User,
		"type":       c.Type,
		"cause":      inventory.CauseAllocations,
		"actor":      w.actor,
		"request":    w.request,
	}).Exec(func(tag pgconn.CommandTag) error {
		done = tag.RowsAffected() == 1
		return nil
	})
	if w.recorder != nil {
		w.recorder.QueueRecordIfMarked(batch, consumerChange(&shift))
	}
	err = s.db.TryBatch(ctx, batch)
	switch {
	case err == nil:
		return done, nil
	case isRefused(err):
		return false, nil
	default:
		return false, fmt.Errorf("replace allocations: %w", err)
	}
}
