package inventorystore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// allocationTx is the state of a transaction that replaces allocations. The transaction locks and reads the
// rows that the writes affect, checks the writes in order, and writes all results in one batch. The
// transaction checks each write against the state after the earlier writes of the same transaction. No
// consumer occurs in two writes of the transaction.
type allocationTx struct {
	writes      []*AllocationWrite
	consumers   map[string]consumerRow                     // existing consumers by UUID
	providers   map[string]*providerState                  // locked providers by UUID
	inventories map[inventory.InventoryKey]*inventoryState // existing inventories of the new allocations
	// allocations before the transaction, by consumer UUID
	allocated map[string]map[inventory.InventoryKey]int64
	changes   []inventory.GenerationChange // changes by the allowed writes
	// changes of the consumers' generations by the allowed writes, by consumer UUID
	shifts map[string]*inventory.GenerationShift
	// the transaction contains no other changes, and is rolled back if all writes fail
	standalone bool
	// what the statement that locks the provider has already added to its generation
	incremented int64
}

// consumerRow is the row of an existing consumer.
type consumerRow struct {
	id, generation int64
	unrecorded     bool // the consumer has allocations, but no project and user
}

// providerState is a locked provider. The field `generation` includes the increments by the writes of the
// transaction that have been applied so far.
type providerState struct {
	id, generation int64
	increments     int64 // number of writes that increased the generation
}

// inventoryState is an inventory and its usage. The field `used` includes the writes of the transaction that
// have been applied so far.
type inventoryState struct {
	providerID int64
	classID    int32
	inventory  inventory.Inventory
	used       int64
}

func newAllocationTx(writes []*AllocationWrite) *allocationTx {
	return &allocationTx{
		writes:      writes,
		consumers:   map[string]consumerRow{},
		providers:   map[string]*providerState{},
		inventories: map[inventory.InventoryKey]*inventoryState{},
		allocated:   map[string]map[inventory.InventoryKey]int64{},
		shifts:      map[string]*inventory.GenerationShift{},
	}
}

// apply checks the writes of the transaction in order. If a write is allowed, apply applies the write to the
// state t; if a write is not allowed, apply sets the field Fault of the write.
func (t *allocationTx) apply(ctx context.Context, q db.Querier) error {
	for _, w := range t.writes {
		w.Fault = nil // an earlier attempt may have set the Fault
		err := t.check(ctx, q, w)
		var fault *inventory.Fault
		switch {
		case err == nil:
			t.applyWrite(w)
		case !errors.As(err, &fault):
			return err
		default:
			w.Fault = err
			if err := t.retryIfConsumerAppeared(ctx, q, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// retryIfConsumerAppeared returns db.ErrRetry if another writer has created a consumer of the rejected write
// w after the transaction locked its rows. The retried transaction then finds that the consumer exists
// although the write expects none, and reports this conflict, which is the true reason for the rejection. An
// allowed write does not need retryIfConsumerAppeared, because the transaction fails when it inserts a
// consumer that another writer has created.
func (t *allocationTx) retryIfConsumerAppeared(ctx context.Context, q db.Querier, w *AllocationWrite) error {
	absent := slices.DeleteFunc(w.consumers(), func(consumer string) bool {
		_, exists := t.consumers[consumer]
		return exists
	})
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

// check returns an *inventory.Fault if the write is not allowed in the current state of the transaction.
func (t *allocationTx) check(ctx context.Context, q db.Querier, w *AllocationWrite) error {
	for _, c := range w.Writes {
		var current *int64
		if row, ok := t.consumers[c.Consumer]; ok && !(row.unrecorded && c.Expect.ExpectsAbsent()) {
			current = &row.generation
		}
		if err := c.CheckGeneration(current); err != nil {
			return err
		}
	}
	for _, provider := range w.providers() {
		if _, ok := t.providers[provider]; !ok {
			return inventory.Faultf(inventory.Invalid,
				"Allocation for resource provider '%s' that does not exist.", provider)
		}
	}
	capacities, missing := t.capacities(w)
	if len(missing) > 0 {
		if err := checkClasses(ctx, q, missing); err != nil {
			return err
		}
	}
	return inventory.CheckCapacity(w.Writes, capacities)
}

// capacities returns the inventories that a write allocates from, and the classes of the requested
// inventories that do not exist. The field UsedByOthers of the returned capacities does not include the
// current allocations of the write's own consumers.
func (t *allocationTx) capacities(
	w *AllocationWrite,
) (capacities map[inventory.InventoryKey]inventory.Capacity, missing []string) {
	capacities = map[inventory.InventoryKey]inventory.Capacity{}
	for _, c := range w.Writes {
		for provider, resources := range c.Allocations {
			for class := range resources {
				key := inventory.InventoryKey{Provider: provider, Class: class}
				if i, ok := t.inventories[key]; ok {
					capacities[key] = inventory.Capacity{
						Inventory:    i.inventory,
						UsedBefore:   i.used,
						UsedByOthers: i.used,
					}
				} else {
					missing = append(missing, class)
				}
			}
		}
	}
	for _, c := range w.Writes {
		for key, amount := range t.allocated[c.Consumer] {
			if capacity, ok := capacities[key]; ok {
				capacity.UsedByOthers -= amount
				capacities[key] = capacity
			}
		}
	}
	return capacities, missing
}

// applyWrite adds the effects of an allowed write to the state t: to the usage of the inventories, the
// generations of the providers, and the entries for the generation history.
func (t *allocationTx) applyWrite(w *AllocationWrite) {
	incremented := map[string]bool{}
	for _, c := range w.Writes {
		for key, amount := range t.allocated[c.Consumer] {
			if i, ok := t.inventories[key]; ok {
				i.used -= amount
			}
		}
		for provider, resources := range c.Allocations {
			for class, amount := range resources {
				t.inventories[inventory.InventoryKey{Provider: provider, Class: class}].used += amount
			}
		}
		consumer := t.consumerShift(c)
		t.shifts[c.Consumer] = consumer
		for _, provider := range t.affectedProviders(c) {
			before := t.providers[provider].generation
			t.changes = append(t.changes, inventory.GenerationChange{
				Actor:     w.actor,
				RequestID: w.request,
				Consumer:  consumer,
				Provider:  &inventory.GenerationShift{UUID: provider, From: &before, To: new(before + 1)},
			})
			incremented[provider] = true
		}
	}
	for provider := range incremented {
		t.providers[provider].generation++
		t.providers[provider].increments++
	}
}

// affectedProviders returns the providers whose generation a write increments, sorted by their database IDs.
// The affected providers are the providers of the new allocations or, if the write deletes the consumer, the
// providers of the consumer's current allocations.
func (t *allocationTx) affectedProviders(c inventory.ConsumerWrite) []string {
	all := c.Allocations.Providers()
	if len(all) == 0 {
		for key := range t.allocated[c.Consumer] {
			all = append(all, key.Provider)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(t.providers[a].id, t.providers[b].id) })
	return slices.Compact(all)
}

// consumerShift returns the change of the consumer's generation by a write.
func (t *allocationTx) consumerShift(c inventory.ConsumerWrite) *inventory.GenerationShift {
	s := &inventory.GenerationShift{UUID: c.Consumer}
	row, exists := t.consumers[c.Consumer]
	if exists {
		s.From = &row.generation
	}
	if len(c.Allocations) > 0 {
		s.To = new(row.generation + 1)
	}
	return s
}
