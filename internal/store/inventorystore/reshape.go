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

// Reshape replaces the inventories of providers and the allocations of consumers in one transaction. Reshape
// first adds the new inventories, then replaces the allocations, and then deletes those inventories of the
// providers that the request does not contain. If the request is not allowed, Reshape returns an
// *inventory.Fault.
//
// As in OpenStack Placement, Reshape increases the generation of a provider by one when it adds inventories,
// by one when it writes allocations, and by one when it deletes inventories.
func (s *Store) Reshape(ctx context.Context, shape inventory.Reshape) error {
	err := s.reshape(ctx, shape)
	s.conflicts.record(err, inventory.CauseReshape)
	return err
}

func (s *Store) reshape(ctx context.Context, shape inventory.Reshape) error {
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		if err := checkInventoryProviders(ctx, tx, shape); err != nil {
			return err
		}
		r, err := lockReshape(ctx, tx, shape)
		if err != nil {
			return err
		}
		if err := r.addInventories(ctx); err != nil {
			return err
		}
		if len(shape.Writes) > 0 {
			consumers, err := replaceAllocations(ctx, tx, NewAllocationWrite(ctx, shape.Writes))
			if err != nil {
				return err
			}
			for _, consumer := range slices.Sorted(maps.Keys(consumers)) {
				tx.Changed(consumerChange(consumers[consumer]))
			}
		}
		if err := r.deleteInventories(ctx); err != nil {
			return err
		}
		return recordReshapedProviders(ctx, tx, shape)
	})
	if db.Transient(err) { // every attempt lost against writers that create the same consumers
		return reshapeConflict("data").About(inventory.ConsumerObject, consumersOf(shape.Writes)...)
	}
	return err
}

// recordReshapedProviders records the changes of the providers of a reshape for the audit log.
func recordReshapedProviders(ctx context.Context, tx db.Tx, shape inventory.Reshape) error {
	after, err := providersWhere(ctx, tx, `uuid = any($1)`, shape.InventoryProviders())
	for _, name := range shape.InventoryProviders() {
		if p := after[name]; p.generation != shape.Inventories[name].Generation {
			p.changed(tx, shape.Inventories[name].Generation)
		}
	}
	return err
}

// reshapeConflict returns the fault of a reshape that failed because another writer has changed the same
// rows.
func reshapeConflict(what string) *inventory.Fault {
	return inventory.Faultf(inventory.ConcurrentUpdate,
		"update conflict: Another thread concurrently updated the %s. Please retry your update", what)
}

// checkInventoryProviders returns a fault if a provider of the new inventories does not exist or does not
// have the expected generation. checkInventoryProviders runs before the transaction locks rows, because the
// transaction locks consumers before providers, but must report a fault about a provider first.
func checkInventoryProviders(ctx context.Context, tx db.Tx, shape inventory.Reshape) error {
	known, err := providersWhere(ctx, tx, `uuid = any($1)`, shape.InventoryProviders())
	if err != nil {
		return err
	}
	for _, name := range shape.InventoryProviders() {
		p, ok := known[name]
		if !ok {
			return inventory.Faultf(inventory.UnknownProvider,
				"Resource provider %s in inventories not found: No resource provider with uuid %s found",
				name, name)
		}
		if given := shape.Inventories[name].Generation; p.generation != given {
			return inventory.Faultf(
				inventory.ConcurrentUpdate,
				"resource provider generation conflict for provider %s: actual: %d, given: %d",
				name, p.generation, given,
			).About(inventory.ProviderObject, name)
		}
	}
	return nil
}

// providersWhere reads the providers that meet a SQL condition and returns them by UUID. The parameter
// `condition` may end with a locking clause such as "for update".
func providersWhere(
	ctx context.Context,
	tx db.Tx,
	condition string,
	args ...any,
) (map[string]LockedProvider, error) {
	all := map[string]LockedProvider{}
	var p LockedProvider
	rows, err := tx.Query(ctx, `select id, uuid, generation from provider where `+condition, args...)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&p.id, &p.uuid, &p.generation}, func() error {
			all[p.uuid] = p
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reshape: read providers: %w", err)
	}
	return all, nil
}

// reshapeTx is a reshape whose consumers and providers are locked.
type reshapeTx struct {
	inventory.Reshape
	tx db.Tx
	// providers of the inventories, of the new allocations and of the consumers' current allocations
	providers map[string]LockedProvider
}

// lockReshape locks the consumers and then the providers of a reshape. If a consumer or provider does not
// have the generation that the reshape request expects, lockReshape returns a fault.
func lockReshape(ctx context.Context, tx db.Tx, shape inventory.Reshape) (*reshapeTx, error) {
	consumers := consumersOf(shape.Writes)
	if err := lockConsumers(ctx, tx, shape.Writes); err != nil {
		return nil, err
	}
	locked, err := providersWhere(ctx, tx, hasUUIDOrConsumer+`
		order by id
		for no key update`, append(shape.InventoryProviders(), shape.AllocationProviders()...), consumers)
	if err != nil {
		return nil, err
	}
	for _, name := range shape.InventoryProviders() {
		if p, ok := locked[name]; !ok || p.generation != shape.Inventories[name].Generation {
			return nil, reshapeConflict("resource provider data").About(inventory.ProviderObject, name)
		}
	}
	for _, name := range shape.AllocationProviders() {
		if _, ok := locked[name]; !ok {
			return nil, inventory.Faultf(inventory.Invalid,
				"Allocation for resource provider '%s' that does not exist.", name)
		}
	}
	return &reshapeTx{shape, tx, locked}, checkClasses(ctx, tx, shape.Classes())
}

// lockConsumers locks the rows of the consumers that the writes change. If a consumer is not in the state
// that the write of the consumer expects, lockConsumers returns a fault.
func lockConsumers(ctx context.Context, tx db.Tx, writes []inventory.ConsumerWrite) error {
	generations := map[string]*int64{}
	var uuid string
	var generation int64
	rows, err := tx.Query(ctx, `
		select uuid, generation
		from consumer
		where uuid = any($1)
		order by uuid
		for no key update`, consumersOf(writes))
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&uuid, &generation}, func() error {
			generations[uuid] = new(generation)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("reshape: lock consumers: %w", err)
	}
	for _, w := range writes {
		if err := w.CheckGeneration(generations[w.Consumer]); err != nil {
			return err
		}
	}
	return nil
}

// addInventories creates or replaces the requested inventories of the providers. addInventories does not
// delete the inventories that the request does not contain, because the present allocations may still use
// them.
func (r *reshapeTx) addInventories(ctx context.Context) error {
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

// deleteInventories deletes the inventories of the providers that the reshape request does not contain.
func (r *reshapeTx) deleteInventories(ctx context.Context) error {
	providers, classes, err := r.leftOver(ctx)
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
		return fmt.Errorf("reshape: delete inventories: %w", err)
	}
	return nil
}

// leftOver returns those inventories of the request's providers that the reshape request does not contain.
// The result consists of two lists of equal length: the provider ID and the class ID of each inventory. If
// one of these inventories has allocations, leftOver returns a fault of kind InventoryInUse.
func (r *reshapeTx) leftOver(ctx context.Context) (providers []int64, classes []int32, err error) {
	var name, class, usedProvider string
	var provider int64
	var id int32
	var inUse bool
	var used []string // classes of one provider
	rows, err := r.tx.Query(ctx, `
		select p.uuid, c.name, i.provider_id, i.class_id,
			exists (select from allocation a where a.provider_id = i.provider_id and a.class_id = i.class_id)
		from provider p
		join inventory i on i.provider_id = p.id
		join resource_class c on c.id = i.class_id
		where p.uuid = any($1)
		order by p.uuid, c.id`, r.InventoryProviders())
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&name, &class, &provider, &id, &inUse}, func() error {
			if _, kept := r.Inventories[name].Classes[class]; kept {
				return nil
			}
			providers, classes = append(providers, provider), append(classes, id)
			if inUse && (usedProvider == "" || usedProvider == name) {
				used, usedProvider = append(used, class), name
			}
			return nil
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reshape: read inventories: %w", err)
	}
	if len(used) > 0 {
		return nil, nil, inventory.Faultf(
			inventory.InventoryInUse, "Inventory for '%s' on resource provider '%s' in use.",
			strings.Join(used, ", "), usedProvider,
		)
	}
	return providers, classes, nil
}
