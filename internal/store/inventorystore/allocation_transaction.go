package inventorystore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// ledger is the part of the books that some replacements touch. It is locked and read, the replacements are
// judged one after another, each against what the ones before it leave, and what comes of them is written at once.
// Several replacements must not name the same consumer.
type ledger struct {
	replacements []*AllocationWrite
	consumers    map[string]account                          // those that exist, by UUID
	providers    map[string]*provided                        // by UUID
	stock        map[inventory.InventoryKey]*stocked         // inventories that are asked for, as far as they exist
	held         map[string]map[inventory.InventoryKey]int64 // what the consumers hold, by UUID
	changes      []inventory.GenerationChange                // what the admitted replacements do to generations
	own          bool                                        // the transaction is its own: given up if nothing comes of it
	ahead        int64                                       // how far the providers' generations are moved before the verdict
}

// account is a consumer that exists.
type account struct{ id, generation int64 }

// provided is a locked provider. Its generation grows with every replacement that is entered: moved tells by how much.
type provided struct {
	id, generation, moved int64
}

// stocked is an inventory and how much of it is in use.
type stocked struct {
	provider  int64
	class     int32
	inventory inventory.Inventory
	used      int64
}

func newLedger(all []*AllocationWrite) *ledger {
	return &ledger{replacements: all, consumers: map[string]account{}, providers: map[string]*provided{},
		stock: map[inventory.InventoryKey]*stocked{}, held: map[string]map[inventory.InventoryKey]int64{}}
}

// queueReads locks everything in order and reads what the judgement needs.
func (l *ledger) queueReads(batch *pgx.Batch) {
	var consumers, holders, emptied []string
	for _, r := range l.replacements {
		for _, w := range r.Writes {
			consumers = append(consumers, w.Consumer)
			if !w.Expect.ExpectsAbsent() { // of one that should not exist nothing is taken
				holders = append(holders, w.Consumer)
			}
			if len(w.Allocations) == 0 {
				emptied = append(emptied, w.Consumer)
			}
		}
	}
	batch.Queue(`
		select uuid, id, generation
		from consumer
		where uuid = any($1)
		order by uuid
		for no key update`, consumers).Query(l.readConsumers)
	l.queueProviders(batch, emptied)
	if len(holders) > 0 {
		batch.Queue(`
			select c.uuid, (select uuid from provider where id = a.provider_id), (select name from resource_class where id = a.class_id),
				a.amount
			from consumer c
			join allocation a on a.consumer_id = c.id
			where c.uuid = any($1)`, holders).Query(l.readHeld)
	}
	l.queueStock(batch)
}

// involved are the providers with the UUIDs $1, and those that the consumers with the UUIDs $2 have something of.
const involved = `
		id = any (array(
			select id from provider where uuid = any($1)
			union
			select a.provider_id
			from consumer c
			join allocation a on a.consumer_id = c.id
			where c.uuid = any($2)))`

// queueProviders locks the providers of the new allocations and those that emptied consumers leave. One
// that is the only one is locked by moving its generation on, which is what mostly becomes of it.
func (l *ledger) queueProviders(batch *pgx.Batch, emptied []string) {
	const lock = `
		select uuid, id, generation
		from provider
		where %s
		order by id
		for no key update`
	asked := l.asked()
	switch {
	case len(emptied) > 0:
		batch.Queue(fmt.Sprintf(lock, involved), asked, emptied).Query(l.readProviders)
	case l.own && len(asked) == 1:
		l.ahead = 1
		batch.Queue(`
			update provider
			set generation = generation + 1, updated_at = now()
			where uuid = $1
			returning uuid, id, generation - 1`, asked[0]).Query(l.readProviders)
	default:
		batch.Queue(fmt.Sprintf(lock, `uuid = any($1)`), asked).Query(l.readProviders)
	}
}

// asked lists the providers of the new allocations.
func (l *ledger) asked() []string {
	var all []string
	for _, r := range l.replacements {
		all = append(all, r.asked()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// queueStock reads the inventories that are asked for and what is in use of them.
func (l *ledger) queueStock(batch *pgx.Batch) {
	var classes []string
	for _, r := range l.replacements {
		for _, w := range r.Writes {
			for _, resources := range w.Allocations {
				classes = slices.AppendSeq(classes, maps.Keys(resources))
			}
		}
	}
	if len(classes) == 0 {
		return
	}
	slices.Sort(classes)
	batch.Queue(`
		select p.uuid, (select name from resource_class where id = i.class_id), i.provider_id, i.class_id,
			i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio,
			coalesce((
				select sum(amount)
				from allocation
				where provider_id = i.provider_id and class_id = i.class_id), 0)::bigint
		from provider p
		join inventory i on i.provider_id = p.id
		where p.uuid = any($1) and (select name from resource_class where id = i.class_id) = any($2)`,
		l.asked(), slices.Compact(classes)).Query(l.readStock)
}

func (l *ledger) readConsumers(rows pgx.Rows) error {
	var uuid string
	var a account
	_, err := pgx.ForEachRow(rows, []any{&uuid, &a.id, &a.generation}, func() error {
		l.consumers[uuid] = a
		return nil
	})
	return err
}

func (l *ledger) readProviders(rows pgx.Rows) error {
	var uuid string
	var p provided
	_, err := pgx.ForEachRow(rows, []any{&uuid, &p.id, &p.generation}, func() error {
		locked := p
		l.providers[uuid] = &locked
		return nil
	})
	return err
}

func (l *ledger) readHeld(rows pgx.Rows) error {
	var consumer string
	var key inventory.InventoryKey
	var amount int64
	_, err := pgx.ForEachRow(rows, []any{&consumer, &key.Provider, &key.Class, &amount}, func() error {
		if _, locked := l.consumers[consumer]; !locked { // it has just appeared
			return nil
		}
		if l.held[consumer] == nil {
			l.held[consumer] = map[inventory.InventoryKey]int64{}
		}
		l.held[consumer][key] = amount
		return nil
	})
	return err
}

func (l *ledger) readStock(rows pgx.Rows) error {
	var key inventory.InventoryKey
	var s stocked
	i := &s.inventory
	_, err := pgx.ForEachRow(rows, []any{&key.Provider, &key.Class, &s.provider, &s.class, &i.Total, &i.Reserved,
		&i.MinUnit, &i.MaxUnit, &i.StepSize, &i.AllocationRatio, &s.used}, func() error {
		read := s
		l.stock[key] = &read
		return nil
	})
	return err
}

// judge decides every replacement in turn.
func (l *ledger) judge(ctx context.Context, q db.Querier) error {
	for _, r := range l.replacements {
		r.Refusal = nil // of an earlier attempt
		err := l.admit(ctx, q, r)
		var problem *inventory.Fault
		switch {
		case err == nil:
			l.enter(r)
		case !errors.As(err, &problem):
			return err
		default:
			r.Refusal = err
			if err := l.confirm(ctx, q, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// confirm makes sure that a refusal is not owed to somebody who has also created one of the consumers meanwhile:
// who comes second is told so. An admitted replacement creates its consumers itself and need not ask.
func (l *ledger) confirm(ctx context.Context, q db.Querier, r *AllocationWrite) error {
	var absent []string
	for _, w := range r.Writes {
		if _, ok := l.consumers[w.Consumer]; !ok {
			absent = append(absent, w.Consumer)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select uuid from consumer where uuid = any($1)`, absent)
	if err != nil {
		return err
	}
	appeared, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(appeared) > 0 {
		err = db.ErrRetry
	}
	return err
}

// admit tells whether a replacement may be done.
func (l *ledger) admit(ctx context.Context, q db.Querier, r *AllocationWrite) error {
	for _, w := range r.Writes {
		var current *int64
		if a, ok := l.consumers[w.Consumer]; ok {
			current = &a.generation
		}
		if err := w.Expect.Check(current); err != nil {
			return err
		}
	}
	for _, provider := range r.asked() {
		if _, ok := l.providers[provider]; !ok {
			return inventory.Faultf(inventory.Invalid, "Allocation for resource provider '%s' that does not exist.", provider)
		}
	}
	shelves, doubtful := l.shelves(r)
	if len(doubtful) > 0 {
		if err := knownClasses(ctx, q, doubtful); err != nil {
			return err
		}
	}
	return inventory.CheckCapacity(r.Writes, shelves)
}

// shelves are the inventories that a replacement takes from, and the classes of those that do not exist. What its
// consumers hold is not counted as held by others.
func (l *ledger) shelves(r *AllocationWrite) (shelves map[inventory.InventoryKey]inventory.Capacity, doubtful []string) {
	shelves = map[inventory.InventoryKey]inventory.Capacity{}
	for _, w := range r.Writes {
		for provider, resources := range w.Allocations {
			for class := range resources {
				key := inventory.InventoryKey{Provider: provider, Class: class}
				if s, ok := l.stock[key]; ok {
					shelves[key] = inventory.Capacity{Inventory: s.inventory, UsedBefore: s.used, UsedByOthers: s.used}
				} else {
					doubtful = append(doubtful, class)
				}
			}
		}
	}
	for _, w := range r.Writes {
		for key, amount := range l.held[w.Consumer] {
			if shelf, ok := shelves[key]; ok {
				shelf.UsedByOthers -= amount
				shelves[key] = shelf
			}
		}
	}
	return shelves, doubtful
}

// enter puts an admitted replacement into the books.
func (l *ledger) enter(r *AllocationWrite) {
	touched := map[string]bool{}
	for _, w := range r.Writes {
		for key, amount := range l.held[w.Consumer] {
			if s, ok := l.stock[key]; ok {
				s.used -= amount
			}
		}
		for provider, resources := range w.Allocations {
			for class, amount := range resources {
				l.stock[inventory.InventoryKey{Provider: provider, Class: class}].used += amount
			}
		}
		shift := l.shift(w)
		for _, provider := range l.touched(w) {
			before := l.providers[provider].generation
			l.changes = append(l.changes, inventory.GenerationChange{Actor: r.actor, Consumer: shift,
				Provider: &inventory.GenerationShift{UUID: provider, From: &before, To: new(before + 1)}})
			touched[provider] = true
		}
	}
	for provider := range touched {
		l.providers[provider].generation++
		l.providers[provider].moved++
	}
}

// touched are the providers whose generation a write moves, by ID: those of the new allocations, or those that an
// emptied consumer leaves.
func (l *ledger) touched(w inventory.ConsumerWrite) []string {
	all := w.Allocations.Providers()
	if len(all) == 0 {
		for key := range l.held[w.Consumer] {
			all = append(all, key.Provider)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(l.providers[a].id, l.providers[b].id) })
	return slices.Compact(all)
}

// shift is how a write moves its consumer's generation.
func (l *ledger) shift(w inventory.ConsumerWrite) *inventory.GenerationShift {
	s := &inventory.GenerationShift{UUID: w.Consumer}
	a, exists := l.consumers[w.Consumer]
	if exists {
		s.From = &a.generation
	}
	if len(w.Allocations) > 0 {
		s.To = new(a.generation + 1)
	}
	return s
}
