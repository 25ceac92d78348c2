package leasestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
)

func (instanceResource) addToInventory(ctx context.Context, tx *transaction, all []leaseReservation) error {
	if err := lockSlotProviders(ctx, tx, all); err != nil {
		return err
	}
	for _, h := range all {
		want, have, err := readSlotCounts(ctx, tx, h.Reservation)
		if err != nil {
			return err
		}
		if want.equals(have) {
			continue
		}
		if err := inventorystore.EnsureClass(ctx, tx, lease.ReservationResourceClass(h.ID)); err != nil {
			return err
		}
		if err := writeSlotInventory(ctx, tx, h, want, have, keepUsedSlots); err != nil {
			return err
		}
	}
	return nil
}

func (instanceResource) removeFromInventory(
	ctx context.Context,
	tx *transaction,
	all []leaseReservation,
) error {
	if err := lockSlotProviders(ctx, tx, all); err != nil {
		return err
	}
	for _, h := range all {
		_, have, err := readSlotCounts(ctx, tx, h.Reservation)
		if err != nil {
			return err
		}
		if err := writeSlotInventory(ctx, tx, h, nil, have, refuseUsedSlots); err != nil {
			return err
		}
		if err := inventorystore.DropClass(ctx, tx, lease.ReservationResourceClass(h.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (instanceResource) missingInInventory(
	ctx context.Context,
	tx *transaction,
	all []leaseReservation,
) (missing []leaseReservation, err error) {
	for _, h := range all {
		want, have, err := readSlotCounts(ctx, tx, h.Reservation)
		if err != nil {
			return nil, err
		}
		if !want.equals(have) {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// lockSlotProviders locks all nested providers that have or will get slots of the reservations. Because
// several reservations can have slots on the same host, every transaction locks the nested providers in the
// order of their IDs; the common order avoids deadlocks.
func lockSlotProviders(ctx context.Context, tx *transaction, all []leaseReservation) error {
	ids, classes := make([]uuid.UUID, len(all)), make([]string, len(all))
	for i, h := range all {
		ids[i], classes[i] = h.ID, lease.ReservationResourceClass(h.ID)
	}
	if _, err := tx.Exec(ctx, `
		select from provider
		where id = any(array(
			select p.id
			from host_allocation a
			join host h on h.id = a.host_id
			join provider p on p.uuid = h.nested::text
			where a.reservation_id = any($1)
			union
			select i.provider_id
			from inventory i
			join resource_class c on c.id = i.class_id
			where c.name = any($2)))
		order by id
		for no key update`, ids, classes); err != nil {
		return fmt.Errorf("lock providers of slots: %w", err)
	}
	return nil
}

// ReservationConsumers returns the UUIDs of the consumers in Placement that have slots of a reservation of
// instances, sorted: servers, or migrations from a host of the reservation.
func (s *Store) ReservationConsumers(ctx context.Context, reservation uuid.UUID) ([]string, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowTo[string], `
		select distinct n.uuid
		from resource_class c
		join inventory i on i.class_id = c.id
		join allocation a on a.provider_id = i.provider_id and a.class_id = i.class_id
		join consumer n on n.id = a.consumer_id
		where c.name = $1
		order by n.uuid`, lease.ReservationResourceClass(reservation))
	if err != nil {
		return nil, fmt.Errorf("read the consumers of reservation %s: %w", reservation, err)
	}
	return all, nil
}

// slotCounts maps the UUIDs of nested providers to numbers of slots.
type slotCounts map[string]int64

func (s slotCounts) equals(other slotCounts) bool { return maps.Equal(s, other) }

// readSlotCounts returns the numbers of a reservation's slots by nested provider: `want` contains the slots
// that are allocated to the reservation, and `have` contains the slots that exist as inventory in Placement.
func readSlotCounts(
	ctx context.Context,
	tx *transaction,
	r lease.Reservation,
) (want, have slotCounts, err error) {
	rows, err := tx.Query(ctx, `
		select h.nested::text, a.slots, 0
		from host_allocation a
		join host h on h.id = a.host_id
		where a.reservation_id = $1
		union all
		select p.uuid, 0, i.total
		from inventory i
		join provider p on p.id = i.provider_id
		join resource_class c on c.id = i.class_id
		where c.name = $2`, r.ID, lease.ReservationResourceClass(r.ID))
	if err != nil {
		return nil, nil, fmt.Errorf("read slots of reservation %s: %w", r.ID, err)
	}
	want, have = slotCounts{}, slotCounts{}
	var provider string
	var slots, total int64
	_, err = pgx.ForEachRow(rows, []any{&provider, &slots, &total}, func() error {
		if slots > 0 {
			want[provider] = slots
		} else {
			have[provider] = total
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read slots of reservation %s: %w", r.ID, err)
	}
	return want, have, nil
}

// writeSlotInventory changes the inventories of nested providers in Placement from `have` to `want`, and
// increments the generation of each changed provider. If an inventory that is to be deleted still has
// allocations, writeSlotInventory calls the function `onUsed` instead of deleting the inventory.
func writeSlotInventory(
	ctx context.Context,
	tx *transaction,
	h leaseReservation,
	want, have slotCounts,
	onUsed func(batch *pgx.Batch, p inventorystore.LockedProvider, class string, total int64, problem *inventory.Fault) error,
) error {
	ctx = h.withActor(ctx)
	class := lease.ReservationResourceClass(h.ID)
	all := maps.Clone(have)
	maps.Copy(all, want)
	for _, provider := range slices.Sorted(maps.Keys(all)) {
		if want[provider] == have[provider] {
			continue
		}
		p, err := inventorystore.LockInventories(ctx, tx, provider)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		if n := want[provider]; n > 0 {
			i := inventory.NewInventory(n)
			i.MaxUnit = 1
			inventorystore.QueueInventory(batch, p.LockedProvider, class, i)
		} else if err := p.QueueDelete(ctx, tx, batch, []string{class}); err != nil {
			var problem *inventory.Fault
			if errors.As(err, &problem) {
				err = onUsed(batch, p.LockedProvider, class, have[provider], problem)
			}
			if err != nil {
				return err
			}
		}
		p.QueueGeneration(ctx, batch, inventory.CauseInventories)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("write slots of reservation %s on provider %s: %w", h.ID, provider, err)
		}
	}
	return nil
}

// keepUsedSlots keeps the inventory of slots on a failed host, because servers on the host still have
// allocations from this inventory. keepUsedSlots sets the inventory's `reserved` to its total, so that no
// further server can get an allocation from the inventory.
func keepUsedSlots(
	batch *pgx.Batch,
	p inventorystore.LockedProvider,
	class string,
	total int64,
	_ *inventory.Fault,
) error {
	i := inventory.NewInventory(total)
	i.MaxUnit, i.Reserved = 1, total
	inventorystore.QueueInventory(batch, p, class, i)
	return nil
}

// refuseUsedSlots returns a *lease.Fault, because the servers that use the slots have to be deleted first.
func refuseUsedSlots(
	_ *pgx.Batch,
	_ inventorystore.LockedProvider,
	class string,
	_ int64,
	problem *inventory.Fault,
) error {
	return lease.Faultf(lease.HostInUse, "%s is still used: %s", class, problem.Message)
}
