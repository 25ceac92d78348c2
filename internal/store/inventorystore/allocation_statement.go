package inventorystore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
)

// atOnce gives the amounts $3 of the classes $2 of a provider $1 to a consumer $4, all or nothing. It does so if that
// is beyond doubt, and nothing otherwise: the consumer does not exist, the amounts fit what the statement sees, and once
// the provider is locked its generation, which moves with everything that is taken of it, is the one that was seen.
// What fits is said here as inventory.Admit says it.
const atOnce = `
	with shelf as (
		select p.id, p.uuid, p.generation, i.class_id, new.amount
		from provider p
		cross join unnest($2::text[], $3::integer[]) as new (class, amount)
		join resource_class c on c.name = new.class
		join inventory i on i.provider_id = p.id and i.class_id = c.id
		where p.uuid = $1
			and new.amount between i.min_unit and i.max_unit and new.amount % i.step_size = 0
			and new.amount + coalesce((
				select sum(amount)
				from allocation
				where provider_id = i.provider_id and class_id = i.class_id), 0) <= (i.total - i.reserved) * i.allocation_ratio
	), moved as (
		update provider p
		set generation = p.generation + 1, updated_at = now()
		from (
			select id, generation
			from shelf
			group by id, generation
			having count(*) = cardinality($2)) as seen
		where p.id = seen.id and p.generation = seen.generation and not exists (select from consumer where uuid = $4)
		returning p.id, p.uuid, p.generation
	), made as (
		insert into consumer (uuid, project, user_id, type, generation)
		select $4, $5, $6, $7, 1
		from moved
		returning id
	), given as (
		insert into allocation (consumer_id, provider_id, class_id, amount)
		select made.id, shelf.id, shelf.class_id, shelf.amount
		from made, shelf
	)
	insert into generation_change (cause, actor, consumer, consumer_to, provider, provider_from, provider_to)
	select $8, $9, $4, 1, uuid, generation - 1, generation
	from moved`

// allocateAtOnce does a replacement of one provider in one statement if it can: for one new consumer, which is most of
// what is ever written. Whatever it leaves undone is for settle, which has two round trips and an answer to everything.
func (s *Store) allocateAtOnce(ctx context.Context, r *AllocationWrite) (done bool, err error) {
	if len(r.Writes) != 1 || !r.Writes[0].Expect.ExpectsAbsent() {
		return false, nil
	}
	w := r.Writes[0]
	provider := r.asked()[0]
	classes := slices.Collect(maps.Keys(w.Allocations[provider]))
	amounts := make([]int64, len(classes))
	for i, class := range classes {
		if amounts[i] = w.Allocations[provider][class]; amounts[i] > inventory.MaxInt {
			return false, nil
		}
	}
	batch := &pgx.Batch{}
	queued := batch.Queue(atOnce, provider, classes, amounts, w.Consumer, w.Project, w.User, w.Type, inventory.CauseAllocations, r.actor)
	queued.Exec(func(tag pgconn.CommandTag) error {
		done = tag.RowsAffected() == 1
		return nil
	})
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
