package inventorystore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// Reshape replaces the inventories of some providers and the allocations of some consumers in one transaction, in
// which what is there stands beside what will be until everything has moved. Refusals are an *inventory.Fault.
//
// A provider with a stock moves on by one when inventories are added, by one if allocations of it are written, and
// by one when inventories are taken away: what clients of Placement count.
func (s *Store) Reshape(ctx context.Context, shape inventory.Reshape) error {
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		if err := checkStocks(ctx, tx, shape); err != nil {
			return err
		}
		r, err := lockShape(ctx, tx, shape)
		if err != nil {
			return err
		}
		if err := r.add(ctx); err != nil {
			return err
		}
		if len(shape.Writes) > 0 {
			if err := ReplaceAllocations(ctx, tx, NewAllocationWrite(ctx, shape.Writes)); err != nil {
				return err
			}
		}
		return r.finish(ctx)
	})
	if db.Transient(err) { // again and again: others create the same consumers
		return lostReshape("data")
	}
	return err
}

// lostReshape is the refusal of a reshape that others have overtaken.
func lostReshape(what string) error {
	return inventory.Faultf(inventory.ConcurrentUpdate, "update conflict: Another thread concurrently updated the %s. Please retry your update", what)
}

// checkStocks refuses what is wrong before anything is locked. Consumers are locked before providers, but what is
// wrong with the providers is told first.
func checkStocks(ctx context.Context, tx db.Tx, shape inventory.Reshape) error {
	known, err := providersWhere(ctx, tx, `uuid = any($1)`, shape.InventoryProviders())
	if err != nil {
		return err
	}
	for _, name := range shape.InventoryProviders() {
		p, ok := known[name]
		if !ok {
			return inventory.Faultf(inventory.UnknownProvider,
				"Resource provider %s in inventories not found: No resource provider with uuid %s found", name, name)
		}
		if given := shape.Inventories[name].Generation; p.generation != given {
			return inventory.Faultf(inventory.ConcurrentUpdate,
				"resource provider generation conflict for provider %s: actual: %d, given: %d", name, p.generation, given)
		}
	}
	return nil
}

// providersWhere reads providers by UUID. The condition may end in a lock.
func providersWhere(ctx context.Context, tx db.Tx, condition string, args ...any) (map[string]LockedProvider, error) {
	rows, err := tx.Query(ctx, `select id, uuid, generation from provider where `+condition, args...)
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	all := map[string]LockedProvider{}
	var p LockedProvider
	if _, err := pgx.ForEachRow(rows, []any{&p.id, &p.uuid, &p.generation}, func() error {
		all[p.uuid] = p
		return nil
	}); err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return all, nil
}

// reshaping is a reshape whose consumers and providers are locked.
type reshaping struct {
	inventory.Reshape
	tx        db.Tx
	providers map[string]LockedProvider // those with a stock, those of the new allocations and those that emptied consumers leave
}

// lockShape locks the consumers and then the providers of a reshape, and refuses it if they are not as it expects.
func lockShape(ctx context.Context, tx db.Tx, shape inventory.Reshape) (*reshaping, error) {
	var emptied []string
	for _, w := range shape.Writes {
		if len(w.Allocations) == 0 {
			emptied = append(emptied, w.Consumer)
		}
	}
	if err := lockConsumers(ctx, tx, shape.Writes); err != nil {
		return nil, err
	}
	locked, err := providersWhere(ctx, tx, hasUUIDOrConsumer+`
		order by id
		for no key update`, append(shape.InventoryProviders(), shape.AllocationProviders()...), emptied)
	if err != nil {
		return nil, err
	}
	for _, name := range shape.InventoryProviders() {
		if p, ok := locked[name]; !ok || p.generation != shape.Inventories[name].Generation {
			return nil, lostReshape("resource provider data")
		}
	}
	for _, name := range shape.AllocationProviders() {
		if _, ok := locked[name]; !ok {
			return nil, inventory.Faultf(inventory.Invalid, "Allocation for resource provider '%s' that does not exist.", name)
		}
	}
	return &reshaping{shape, tx, locked}, checkClasses(ctx, tx, shape.Classes())
}

// lockConsumers locks those of the consumers that exist, and refuses the writes if one is not as expected.
func lockConsumers(ctx context.Context, tx db.Tx, writes []inventory.ConsumerWrite) error {
	names := make([]string, len(writes))
	for i, w := range writes {
		names[i] = w.Consumer
	}
	rows, err := tx.Query(ctx, `
		select uuid, generation
		from consumer
		where uuid = any($1)
		order by uuid
		for no key update`, names)
	if err != nil {
		return fmt.Errorf("lock consumers: %w", err)
	}
	generations := map[string]*int64{}
	var uuid string
	var generation int64
	if _, err := pgx.ForEachRow(rows, []any{&uuid, &generation}, func() error {
		generations[uuid] = new(generation)
		return nil
	}); err != nil {
		return fmt.Errorf("lock consumers: %w", err)
	}
	for _, w := range writes {
		if err := w.Expect.Check(generations[w.Consumer]); err != nil {
			return err
		}
	}
	return nil
}

// add gives the providers what they will have, beside what they have.
func (r *reshaping) add(ctx context.Context) error {
	batch := &pgx.Batch{}
	for _, name := range r.InventoryProviders() {
		p, classes := r.providers[name], r.Inventories[name].Classes
		for _, class := range slices.Sorted(maps.Keys(classes)) {
			QueueInventory(batch, p, class, classes[class])
		}
		if len(classes) > 0 {
			p.QueueGeneration(ctx, batch, inventory.CauseReshape)
		}
	}
	if err := r.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reshape: add inventories: %w", err)
	}
	return nil
}

// finish takes from the providers what they should not have any more.
func (r *reshaping) finish(ctx context.Context) error {
	providers, classes, err := r.surplus(ctx)
	if err != nil {
		return err
	}
	now, err := providersWhere(ctx, r.tx, `uuid = any($1)`, r.InventoryProviders())
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if len(providers) > 0 {
		batch.Queue(`
			delete from inventory
			where (provider_id, class_id) in (select * from unnest($1::bigint[], $2::integer[]))`, providers, classes)
	}
	for _, name := range r.InventoryProviders() {
		p := now[name]
		p.QueueGeneration(ctx, batch, inventory.CauseReshape)
	}
	if err := r.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reshape: take inventories away: %w", err)
	}
	return nil
}

// surplus lists the inventories that the providers have and should not have, by their IDs. One of which something
// is allocated still is InventoryInUse.
func (r *reshaping) surplus(ctx context.Context) (providers []int64, classes []int32, err error) {
	rows, err := r.tx.Query(ctx, `
		select p.uuid, c.name, i.provider_id, i.class_id,
			exists (select from allocation a where a.provider_id = i.provider_id and a.class_id = i.class_id)
		from provider p
		join inventory i on i.provider_id = p.id
		join resource_class c on c.id = i.class_id
		where p.uuid = any($1)
		order by p.uuid, c.id`, r.InventoryProviders())
	if err != nil {
		return nil, nil, fmt.Errorf("reshape: inventories: %w", err)
	}
	var name, class, of string
	var provider int64
	var id int32
	var inUse bool
	var used []string // classes of one provider
	if _, err := pgx.ForEachRow(rows, []any{&name, &class, &provider, &id, &inUse}, func() error {
		if _, stays := r.Inventories[name].Classes[class]; stays {
			return nil
		}
		providers, classes = append(providers, provider), append(classes, id)
		if inUse && (of == "" || of == name) {
			used, of = append(used, class), name
		}
		return nil
	}); err != nil {
		return nil, nil, fmt.Errorf("reshape: inventories: %w", err)
	}
	if len(used) > 0 {
		return nil, nil, inventory.Faultf(inventory.InventoryInUse, "Inventory for '%s' on resource provider '%s' in use.",
			strings.Join(used, ", "), of)
	}
	return providers, classes, nil
}
