package inventorystore

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// queueReads queues the statements that lock the consumers, then lock the providers, and then read the rows
// that the checks need.
func (t *allocationTx) queueReads(batch *pgx.Batch) {
	var consumers, existing, absent []string
	for _, w := range t.writes {
		for _, c := range w.Writes {
			consumers = append(consumers, c.Consumer)
			if c.Expect.ExpectsAbsent() {
				absent = append(absent, c.Consumer)
			} else {
				existing = append(existing, c.Consumer)
			}
		}
	}
	batch.Queue(`
		select uuid, id, generation, project is null
		from consumer
		where uuid = any($1)
		order by uuid
		for no key update`, consumers).Query(t.readConsumers)
	t.queueProviders(batch, existing, absent)
	// A write that expects no consumer is rejected if the consumer exists, unless the consumer has no project
	// and user. Of the consumers that a write expects not to exist, this query therefore reads only those
	// without project and user.
	batch.Queue(`
		select c.uuid, (select uuid from provider where id = a.provider_id), (select name from resource_class where id = a.class_id),
			a.amount
		from consumer c
		join allocation a on a.consumer_id = c.id
		where c.uuid = any($1) or c.uuid = any($2) and c.project is null`, existing, absent).Query(t.readAllocations)
	t.queueInventories(batch)
}

// hasUUIDOrConsumer is a SQL condition for a provider: the provider's UUID is one of $1, or one of the
// consumers $2 has an allocation from the provider.
const hasUUIDOrConsumer = `
		id = any (array(
			select id from provider where uuid = any($1)
			union
			select a.provider_id
			from consumer c
			join allocation a on a.consumer_id = c.id
			where c.uuid = any($2)))`

// queueProviders queues the statement that locks the providers of the new allocations and of the consumers'
// current allocations, whose inventories the deletion of these allocations updates. In a standalone
// transaction with a single provider and only new consumers, the update that increments the provider's
// generation also locks the provider. Locking with the update saves a statement, because most writes are
// allowed and need the increment of the generation anyway.
func (t *allocationTx) queueProviders(batch *pgx.Batch, existing, absent []string) {
	uuids := t.newProviders()
	if t.standalone && len(uuids) == 1 && len(existing) == 0 {
		t.incremented = 1
		batch.Queue(`
			update provider
			set generation = generation + 1, updated_at = now()
			where uuid = $1
			returning uuid, id, generation - 1`, uuids[0]).Query(t.readProviders)
		return
	}
	batch.Queue(`
		select uuid, id, generation
		from provider
		where `+hasUUIDOrConsumer+`
		order by id
		for no key update`, uuids, slices.Concat(existing, absent)).Query(t.readProviders)
}

// newProviders returns the UUIDs of the providers of the new allocations, sorted.
func (t *allocationTx) newProviders() []string {
	var all []string
	for _, w := range t.writes {
		all = append(all, w.providers()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// queueInventories queues the query for the inventories of the new allocations and their usage.
func (t *allocationTx) queueInventories(batch *pgx.Batch) {
	var classes []string
	for _, w := range t.writes {
		for _, c := range w.Writes {
			for _, resources := range c.Allocations {
				classes = slices.AppendSeq(classes, maps.Keys(resources))
			}
		}
	}
	if len(classes) == 0 {
		return
	}
	slices.Sort(classes)
	batch.Queue(`
		select p.uuid as provider, (select name from resource_class where id = i.class_id) as class, i.provider_id, i.class_id,
			i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.used
		from provider p
		join inventory i on i.provider_id = p.id
		where p.uuid = any($1) and (select name from resource_class where id = i.class_id) = any($2)`,
		t.newProviders(), slices.Compact(classes)).Query(t.readInventories)
}

func (t *allocationTx) readConsumers(rows pgx.Rows) error {
	var uuid string
	var row consumerRow
	_, err := pgx.ForEachRow(rows, []any{&uuid, &row.id, &row.generation, &row.unrecorded}, func() error {
		t.consumers[uuid] = row
		return nil
	})
	return err
}

func (t *allocationTx) readProviders(rows pgx.Rows) error {
	var uuid string
	var id, generation int64
	_, err := pgx.ForEachRow(rows, []any{&uuid, &id, &generation}, func() error {
		t.providers[uuid] = &providerState{id: id, generation: generation}
		return nil
	})
	return err
}

func (t *allocationTx) readAllocations(rows pgx.Rows) error {
	var consumer string
	var key inventory.InventoryKey
	var amount int64
	_, err := pgx.ForEachRow(rows, []any{&consumer, &key.Provider, &key.Class, &amount}, func() error {
		// another writer has created the consumer after this transaction took its locks
		if _, locked := t.consumers[consumer]; !locked {
			return nil
		}
		if t.allocated[consumer] == nil {
			t.allocated[consumer] = map[inventory.InventoryKey]int64{}
		}
		t.allocated[consumer][key] = amount
		return nil
	})
	return err
}

// inventoryRow is a row of a query result with an inventory and its usage; pgx assigns the columns to the
// fields by name.
type inventoryRow struct {
	Provider   string
	Class      string
	ProviderID int64
	ClassID    int32
	inventory.Inventory
	Used int64
}

func (t *allocationTx) readInventories(rows pgx.Rows) error {
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[inventoryRow])
	for _, r := range all {
		key := inventory.InventoryKey{Provider: r.Provider, Class: r.Class}
		t.inventories[key] = &inventoryState{
			providerID: r.ProviderID,
			classID:    r.ClassID,
			inventory:  r.Inventory,
			used:       r.Used,
		}
	}
	return err
}
