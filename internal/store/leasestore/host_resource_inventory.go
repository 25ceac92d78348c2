package leasestore

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/inventorystore"
)

// addToInventory replaces the allocations of the given reservations in Placement: afterwards each reservation
// has one allocation from the nested provider of each of its hosts, and no other allocation.
func (hostResource) addToInventory(ctx context.Context, tx *transaction, all []leaseReservation) error {
	states, err := readInventoryStates(ctx, tx, all)
	if err != nil {
		return err
	}
	var changes []*inventorystore.AllocationWrite
	for _, h := range all {
		if b := states[h.ID]; !b.matches() {
			changes = append(changes, b.replaceWith(ctx, h, b.want))
		}
	}
	return writeAllocations(ctx, tx, changes)
}

// removeFromInventory deletes all allocations of reservations in Placement.
func (hostResource) removeFromInventory(ctx context.Context, tx *transaction, all []leaseReservation) error {
	states, err := readInventoryStates(ctx, tx, all)
	if err != nil {
		return err
	}
	var changes []*inventorystore.AllocationWrite
	for _, h := range all {
		if b := states[h.ID]; b.generation != nil {
			changes = append(changes, b.replaceWith(ctx, h, nil))
		}
	}
	return writeAllocations(ctx, tx, changes)
}

// missingInInventory returns each reservation whose allocations in Placement do not correspond to the hosts
// that berth's database allocates to it.
func (hostResource) missingInInventory(
	ctx context.Context,
	tx *transaction,
	all []leaseReservation,
) (missing []leaseReservation, err error) {
	states, err := readInventoryStates(ctx, tx, all)
	for _, h := range all {
		if err == nil && !states[h.ID].matches() {
			missing = append(missing, h)
		}
	}
	return missing, err
}

// inventoryState contains the allocations that a reservation must have in Placement (`want`), and the
// allocations that it has (`have`). The reservation is the consumer in Placement, and has one allocation from
// the nested provider of each of its hosts.
type inventoryState struct {
	want, have inventory.Allocations
	generation *int64 // generation of the consumer; nil if the consumer has no allocations
}

func (b *inventoryState) matches() bool {
	return maps.EqualFunc(b.want, b.have, func(a, b map[string]int64) bool { return maps.Equal(a, b) })
}

// replaceWith returns a write that replaces the reservation's allocations in Placement. The returned write
// fails if the generation of the reservation's consumer has changed.
func (b *inventoryState) replaceWith(
	ctx context.Context,
	h leaseReservation,
	allocations inventory.Allocations,
) *inventorystore.AllocationWrite {
	expect := inventory.ExpectAbsent()
	if b.generation != nil {
		expect = inventory.ExpectGeneration(*b.generation)
	}
	return inventorystore.NewAllocationWrite(h.withActor(ctx), []inventory.ConsumerWrite{{
		Consumer:    h.ID.String(),
		Project:     h.lease.Project,
		User:        h.lease.User,
		Expect:      expect,
		Allocations: allocations,
	}})
}

// writeAllocations executes the writes of allocations. If one write fails, writeAllocations returns the error
// of this write, and no write takes effect.
func writeAllocations(ctx context.Context, tx *transaction, changes []*inventorystore.AllocationWrite) error {
	if len(changes) == 0 {
		return nil
	}
	err := inventorystore.ReplaceAllocations(ctx, tx, changes...)
	for _, c := range changes {
		var problem *inventory.Fault
		if !errors.As(c.Fault, &problem) {
			continue
		}
		reservation := c.Writes[0].Consumer
		if problem.Kind == inventory.ConcurrentUpdate {
			return fmt.Errorf(
				"write allocations of reservation %s: another writer has changed them: %w",
				reservation,
				c.Fault,
			)
		}
		return lease.Faultf(lease.HostInUse,
			"reservation %s cannot allocate its hosts in Placement: %s", reservation, problem.Message)
	}
	return err
}

// readInventoryStates reads the allocations that reservations must have in Placement, and the allocations
// that they have.
func readInventoryStates(
	ctx context.Context,
	tx *transaction,
	all []leaseReservation,
) (map[uuid.UUID]*inventoryState, error) {
	states := map[uuid.UUID]*inventoryState{}
	ids, names := make([]uuid.UUID, len(all)), make([]string, len(all))
	for i, h := range all {
		states[h.ID] = &inventoryState{want: inventory.Allocations{}, have: inventory.Allocations{}}
		ids[i], names[i] = h.ID, h.ID.String()
	}
	batch := &pgx.Batch{}
	var id uuid.UUID
	var provider string
	batch.Queue(`
		select a.reservation_id, h.nested::text
		from host_allocation a
		join host h on h.id = a.host_id
		where a.reservation_id = any($1)`, ids).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &provider}, func() error {
			states[id].want[provider] = map[string]int64{lease.HostResourceClass: 1}
			return nil
		})
		return err
	})
	batch.Queue(`
		select k.uuid::uuid, k.generation, p.uuid, c.name, a.amount
		from consumer k
		join allocation a on a.consumer_id = k.id
		join provider p on p.id = a.provider_id
		join resource_class c on c.id = a.class_id
		where k.uuid = any($1)`, names).Query(func(rows pgx.Rows) error {
		var generation, amount int64
		var class string
		_, err := pgx.ForEachRow(rows, []any{&id, &generation, &provider, &class, &amount}, func() error {
			b := states[id]
			if b.generation = new(generation); b.have[provider] == nil {
				b.have[provider] = map[string]int64{}
			}
			b.have[provider][class] = amount
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read allocations of reservations: %w", err)
	}
	return states, nil
}
