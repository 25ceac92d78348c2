package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// PutAllocations replaces what one consumer holds, if the consumer is as the writer expects. Refusals are an
// *inventory.Problem; its Kind tells a lost race (Concurrent: read again and retry) from what does not fit.
func (s *Store) PutAllocations(ctx context.Context, w inventory.ConsumerWrite) error {
	return s.ReplaceAllocations(ctx, []inventory.ConsumerWrite{w})
}

// ReplaceAllocations does the same for several consumers, all or nothing.
func (s *Store) ReplaceAllocations(ctx context.Context, writes []inventory.ConsumerWrite) error {
	return s.inTx(ctx, func(tx pgx.Tx) error { return replaceAllocations(ctx, tx, writes) })
}

// replaceAllocations is the step that writes allocations, for every door: the Placement API and leases. Each
// consumer named at most once comes to hold exactly what its write says; one that holds nothing is deleted. The
// generation of every consumer, of every provider in the new allocations and of those that an emptied consumer
// leaves grows by one.
//
// Locks are taken in one order, consumers by UUID and then providers by ID, and what is read is read under
// them, so that of several writers each is either right or refused with an *inventory.Problem. A caller that
// has locked a provider already must not come here afterwards for consumers that others may be writing.
func replaceAllocations(ctx context.Context, tx pgx.Tx, writes []inventory.ConsumerWrite) error {
	writes = slices.SortedFunc(slices.Values(writes), func(a, b inventory.ConsumerWrite) int {
		return cmp.Compare(a.Consumer, b.Consumer)
	})
	r := replacement{tx: tx, writes: writes, consumers: map[string]written{},
		stock: map[inventory.Key]stocked{}, taken: map[stockID]int64{}, left: map[int64][]int64{}}
	if err := r.clear(ctx); err != nil {
		return err
	}
	if err := r.judge(ctx); err != nil {
		return err
	}
	return r.fill(ctx)
}

// replacement is one run of replaceAllocations.
type replacement struct {
	tx        pgx.Tx
	writes    []inventory.ConsumerWrite // by consumer
	consumers map[string]written        // all of them, by UUID
	providers map[string]lockedProvider // by UUID
	stock     map[inventory.Key]stocked // inventories that the writes ask for, as far as they exist
	taken     map[stockID]int64         // what the consumers held until now
	left      map[int64][]int64         // IDs of the providers where each consumer held it, by ID
}

// written is a consumer that is being written.
type written struct {
	id    int64
	shift inventory.Shift
}

type stockID struct {
	provider int64
	class    int32
}

type stocked struct {
	id        stockID
	inventory inventory.Inventory
	others    int64
}

// clear locks everything in order, takes the old allocations away and reads what the judgement needs: one
// round trip.
func (r *replacement) clear(ctx context.Context) error {
	batch := &pgx.Batch{}
	var consumers, emptied []string
	for _, w := range r.writes {
		consumers = append(consumers, w.Consumer)
		if len(w.Allocations) == 0 {
			emptied = append(emptied, w.Consumer)
		}
		r.queueConsumer(batch, w)
	}
	r.queueProviders(batch, emptied)
	batch.Queue(`
		delete from allocation
		where consumer_id = any (array(select id from consumer where uuid = any($1)))
		returning consumer_id, provider_id, class_id, amount`, consumers).Query(r.readTaken)
	r.queueStock(batch)
	err := r.tx.SendBatch(ctx, batch).Close()
	var other unexpected
	if errors.As(err, &other) {
		return r.explain(ctx, other)
	}
	if err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}

// unexpected means that a consumer is not as its writer thought.
type unexpected struct{ write inventory.ConsumerWrite }

func (unexpected) Error() string { return "consumer is not as expected" }

// explain says what the writer should have expected.
func (r *replacement) explain(ctx context.Context, u unexpected) error {
	var current *int64
	err := r.tx.QueryRow(ctx, `select max(generation) from consumer where uuid = $1`, u.write.Consumer).Scan(&current)
	if err != nil {
		return fmt.Errorf("consumer %s: %w", u.write.Consumer, err)
	}
	if err := u.write.Expect.Check(current); err != nil {
		return err
	}
	return inventory.Refuse(inventory.Concurrent, "Inventory and/or allocations changed while attempting to allocate: "+
		"Another thread concurrently updated the data. Please retry your update")
}

// queueConsumer creates the consumer or moves its generation on, in one statement that also locks it. So it does
// for one that is about to be emptied, even if there is none: nobody else can create it meanwhile.
func (r *replacement) queueConsumer(batch *pgx.Batch, w inventory.ConsumerWrite) {
	batch.Queue(`
		insert into consumer as c (uuid, project, user_id, type, generation)
		values ($1, $2, $3, $4, 1)
		on conflict (uuid) do update
		set project = excluded.project, user_id = excluded.user_id, type = coalesce(excluded.type, c.type),
			generation = c.generation + 1, updated_at = now()
		where $5 or c.generation = $6
		returning id, generation`,
		w.Consumer, w.Project, w.User, w.Type, w.Expect.Anything(), w.Expect.Generation()).
		QueryRow(func(row pgx.Row) error {
			var id, generation int64
			err := row.Scan(&id, &generation)
			if errors.Is(err, pgx.ErrNoRows) {
				return unexpected{w}
			}
			if err != nil {
				return err
			}
			c := written{id, inventory.Shift{UUID: w.Consumer}}
			if generation == 1 { // it was created here
				err = w.Expect.Check(nil)
			} else {
				c.shift.From = new(generation - 1)
			}
			if len(w.Allocations) > 0 {
				c.shift.To = &generation
			}
			r.consumers[w.Consumer] = c
			return err
		})
}

// queueProviders locks the providers of the new allocations and those that emptied consumers leave.
func (r *replacement) queueProviders(batch *pgx.Batch, emptied []string) {
	batch.Queue(`
		select id, uuid, generation
		from provider
		where id = any (array(
			select id from provider where uuid = any($1)
			union
			select a.provider_id
			from consumer c
			join allocation a on a.consumer_id = c.id
			where c.uuid = any($2)))
		order by id
		for no key update`, r.asked(), emptied).
		Query(func(rows pgx.Rows) error {
			r.providers = map[string]lockedProvider{}
			var p lockedProvider
			_, err := pgx.ForEachRow(rows, []any{&p.id, &p.uuid, &p.generation}, func() error {
				r.providers[p.uuid] = p
				return nil
			})
			return err
		})
}

// asked lists the providers of the new allocations.
func (r *replacement) asked() []string {
	var all []string
	for _, w := range r.writes {
		all = append(all, w.Allocations.Providers()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *replacement) readTaken(rows pgx.Rows) error {
	var id stockID
	var consumer, amount int64
	_, err := pgx.ForEachRow(rows, []any{&consumer, &id.provider, &id.class, &amount}, func() error {
		r.taken[id] += amount
		r.left[consumer] = append(r.left[consumer], id.provider)
		return nil
	})
	return err
}

// queueStock reads the inventories that the writes ask for, and what other consumers hold of them.
func (r *replacement) queueStock(batch *pgx.Batch) {
	providers, classes := []string{}, []string{}
	seen := map[inventory.Key]bool{}
	for _, w := range r.writes {
		for provider, resources := range w.Allocations {
			for class := range resources {
				if key := (inventory.Key{Provider: provider, Class: class}); !seen[key] {
					seen[key] = true
					providers, classes = append(providers, provider), append(classes, class)
				}
			}
		}
	}
	if len(seen) == 0 {
		return
	}
	batch.Queue(`
		select (select p.uuid from provider p where p.id = i.provider_id), (select c.name from resource_class c where c.id = i.class_id),
			i.provider_id, i.class_id, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio,
			coalesce((
				select sum(a.amount)
				from allocation a
				where a.provider_id = i.provider_id and a.class_id = i.class_id), 0)::bigint
		from inventory i
		where i.provider_id = any (array(select id from provider where uuid = any($1)))
			and i.class_id = any (array(select id from resource_class where name = any($2)))`, providers, classes).
		Query(r.readStock)
}

func (r *replacement) readStock(rows pgx.Rows) error {
	var key inventory.Key
	var s stocked
	i := &s.inventory
	_, err := pgx.ForEachRow(rows, []any{&key.Provider, &key.Class, &s.id.provider, &s.id.class, &i.Total, &i.Reserved,
		&i.MinUnit, &i.MaxUnit, &i.StepSize, &i.AllocationRatio, &s.others}, func() error {
		r.stock[key] = s
		return nil
	})
	return err
}

// judge tells whether the writes may be done.
func (r *replacement) judge(ctx context.Context) error {
	for _, provider := range r.asked() {
		if _, ok := r.providers[provider]; !ok {
			return inventory.Refuse(inventory.Invalid, "Allocation for resource provider '%s' that does not exist.", provider)
		}
	}
	shelves := map[inventory.Key]inventory.Shelf{}
	for key, s := range r.stock {
		shelves[key] = inventory.Shelf{Inventory: s.inventory, Before: s.others + r.taken[s.id], Others: s.others}
	}
	if err := r.checkClasses(ctx); err != nil {
		return err
	}
	return inventory.Admit(r.writes, shelves)
}

// checkClasses finds classes that do not exist. Those of the stock do, so mostly there is nothing to ask.
func (r *replacement) checkClasses(ctx context.Context) error {
	var doubtful []string
	for _, w := range r.writes {
		for provider, resources := range w.Allocations {
			for class := range resources {
				if _, ok := r.stock[inventory.Key{Provider: provider, Class: class}]; !ok {
					doubtful = append(doubtful, class)
				}
			}
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	return knownClasses(ctx, r.tx, doubtful)
}

// fill writes the new allocations, moves the providers' generations and keeps in the history which moved: one
// round trip.
func (r *replacement) fill(ctx context.Context) error {
	var consumers, providers, amounts []int64
	var gone []int64
	var classes []int32
	for _, w := range r.writes {
		if len(w.Allocations) == 0 {
			gone = append(gone, r.consumers[w.Consumer].id)
		}
		for provider, resources := range w.Allocations {
			for class, amount := range resources {
				id := r.stock[inventory.Key{Provider: provider, Class: class}].id
				consumers, providers = append(consumers, r.consumers[w.Consumer].id), append(providers, id.provider)
				classes, amounts = append(classes, id.class), append(amounts, amount)
			}
		}
	}
	batch := &pgx.Batch{}
	if len(consumers) > 0 {
		batch.Queue(`
			insert into allocation (consumer_id, provider_id, class_id, amount)
			select * from unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[])`, consumers, providers, classes, amounts)
	}
	if len(gone) > 0 {
		batch.Queue(`delete from consumer where id = any($1)`, gone)
	}
	changes, moved := r.changes()
	if len(moved) > 0 {
		batch.Queue(`
			update provider
			set generation = generation + 1, updated_at = now()
			where id = any($1)`, moved)
	}
	queueHistory(ctx, batch, inventory.Allocating, changes...)
	if batch.Len() == 0 {
		return nil
	}
	if err := r.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}
