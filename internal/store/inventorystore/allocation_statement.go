package inventorystore

import (
	"context"
	"errors"
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
		select p.id, p.uuid, p.generation, i.class_id, new.amount, new.position
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

// markedAllocationStatement is allocationStatement for a batch whose next statement writes an audit record.
const markedAllocationStatement = allocationStatement + `
	returning ` + db.MarkWritten

// tryAllocationStatement runs a write that allocates from one provider to one new consumer as one SQL
// statement. This is the most frequent kind of write. tryAllocationStatement reports whether the statement
// has written the allocations. If the statement has not written the allocations, the caller runs the write
// with runAllocationTx, which needs one more round trip to PostgreSQL and returns the reason if the write is
// not allowed.
func (s *Store) tryAllocationStatement(ctx context.Context, w *AllocationWrite) (done bool, err error) {
	if len(w.Writes) != 1 || !w.Writes[0].Expect.ExpectsAbsent() {
		return false, nil
	}
	c := w.Writes[0]
	provider := w.providers()[0]
	keys := c.Keys()
	classes, amounts := make([]string, len(keys)), make([]int64, len(keys))
	for i, key := range keys {
		classes[i] = key.Class
		if amounts[i] = c.Allocations[provider][key.Class]; amounts[i] > inventory.MaxInt {
			return false, nil
		}
	}
	batch, statement := &pgx.Batch{}, allocationStatement
	if w.recorder != nil {
		statement = markedAllocationStatement
	}
	batch.Queue(statement, pgx.NamedArgs{
		"provider": provider,
		"classes":  classes,
		"amounts":  amounts,
		"consumer": c.Consumer,
		"project":  c.Project,
		"user":     c.User,
		"type":     c.Type,
		"cause":    inventory.CauseAllocations,
		"actor":    w.actor,
		"request":  w.request,
	}).Exec(func(tag pgconn.CommandTag) error {
		done = tag.RowsAffected() == 1
		return nil
	})
	if w.recorder != nil {
		w.recorder.QueueRecordIfMarked(batch,
			consumerChange(&inventory.GenerationShift{UUID: c.Consumer, To: new(int64(1))}))
	}
	err = s.db.TryBatch(ctx, batch)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return done, nil
	case errors.As(err, &refused):
		return false, nil
	default:
		return false, fmt.Errorf("replace allocations: %w", err)
	}
}
