package leasestore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// instanceResource implements the interface resource for reservations of the types virtual:instance and
// flavor:instance. An instance reservation has slots on hosts: a slot is the capacity for one instance, and
// several reservations can have slots on the same host. In Placement, the nested provider of a host has an
// inventory of the reservation's own resource class, with one unit for each slot of the reservation on the
// host.
type instanceResource struct{}

func (instanceResource) allocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	candidates, err := slotCandidates(ctx, tx, b)
	if err != nil {
		return err
	}
	slots, err := lease.PickSlots(candidates, b.Amount, b.Affinity)
	if err != nil {
		return err
	}
	return insertSlots(ctx, tx, b, slots)
}

// reallocate releases all slots of a reservation and allocates new slots, if possible on the same hosts as
// before. If the reservation is active, reallocate keeps the allocated slots and only adds further slots.
func (instanceResource) reallocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	if b.active {
		return extendSlots(ctx, tx, b)
	}
	if err := releaseHosts(ctx, tx, b.ID); err != nil {
		return err
	}
	return instanceResource{}.allocate(ctx, tx, b)
}

// extendSlots changes the dates of an active reservation's slots to the requested dates, and adds slots up to
// the requested number of instances.
func extendSlots(ctx context.Context, tx *transaction, b allocationRequest) error {
	kept, held := map[int64]int{}, 0
	for host, n := range b.Slots {
		kept[host] = n
		held += n
	}
	if err := releaseHosts(ctx, tx, b.ID); err != nil {
		return err
	}
	if more := b.Amount - held; more > 0 {
		added, err := pickMoreSlots(ctx, tx, b, more)
		if err != nil {
			return err
		}
		for host, n := range added {
			kept[host] += n
		}
	}
	err := insertSlots(ctx, tx, b, kept)
	if db.Violates(err, "host_allocation_once") || db.Violates(err, "host_allocation_room") {
		return lease.Faultf(lease.NotEnoughHosts, "Not enough hosts available")
	}
	return err
}

// pickMoreSlots chooses hosts for additional instances of a reservation and returns the number of instances
// per host.
func pickMoreSlots(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
	more int,
) (map[int64]int, error) {
	candidates, err := slotCandidates(ctx, tx, b)
	if err != nil {
		return nil, err
	}
	for i := range candidates {
		c := &candidates[i]
		c.FreeSlots = max(c.FreeSlots-c.OwnInstances, 0)
	}
	candidates = slices.DeleteFunc(candidates, func(c lease.SlotCandidate) bool {
		return b.Affinity == lease.AffinitySameHost && len(b.Slots) > 0 && c.OwnInstances == 0 ||
			b.Affinity == lease.AffinityDifferentHosts && c.OwnInstances > 0
	})
	return lease.PickSlots(candidates, more, b.Affinity)
}

// replaceHost moves a reservation's slots from a failed host to other hosts. If the other hosts do not have
// enough capacity for the slots of the failed host, replaceHost only releases these slots, and the result
// `whole` is false.
func (instanceResource) replaceHost(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
	host int64,
) (whole bool, err error) {
	lost := b.Slots[host]
	delete(b.Slots, host)
	if err := releaseHosts(ctx, tx, b.ID); err != nil {
		return false, err
	}
	added, err := pickMoreSlots(ctx, tx, b, lost)
	var fault *lease.Fault
	if whole = err == nil; !whole && !errors.As(err, &fault) {
		return false, err
	}
	for h, n := range added {
		b.Slots[h] += n
	}
	return whole, insertSlots(ctx, tx, b, b.Slots)
}

func insertSlots(ctx context.Context, tx *transaction, b allocationRequest, slots map[int64]int) error {
	hosts := lease.SlotHosts(slots)
	counts := make([]int, len(hosts))
	for i, h := range hosts {
		counts[i] = slots[h]
	}
	if _, err := tx.Exec(ctx, `
		insert into host_allocation (reservation_id, host_id, slots, during)
		select $1, host_id, slots, tstzrange($4, $5)
		from unnest($2::bigint[], $3::integer[]) as s (host_id, slots)`, b.ID, hosts, counts, b.from, b.to); err != nil {
		return fmt.Errorf("allocate slots on hosts: %w", err)
	}
	return nil
}

// slotCandidates returns the hosts that an instance reservation can use at its dates, with the number of free
// slots on each host. Slots that are already allocated to the reservation itself count as free.
func slotCandidates(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
) ([]lease.SlotCandidate, error) {
	hosts, err := readHostCandidates(ctx, tx, b)
	if err != nil {
		return nil, err
	}
	matching, err := tx.matchHosts(hosts, b.ReservationDraft)
	if err != nil {
		return nil, err
	}
	uses, alone, err := readHostUsage(ctx, tx, b)
	if err != nil {
		return nil, err
	}
	capacity, err := readHostCapacities(ctx, tx, b.ReservationDraft)
	if err != nil {
		return nil, err
	}
	var all []lease.SlotCandidate
	each := b.Resources()
	for _, h := range matching {
		has, fits := capacity[h.ID]
		if h.Reservable && fits && !alone[h.ID] && !h.FormerOfOther && h.ID != b.avoid {
			all = append(all, lease.SlotCandidate{
				Host:         h.ID,
				FreeSlots:    lease.FreeSlots(has, lease.PeakUsage(uses[h.ID], b.from, b.to), each),
				UsedByOthers: len(uses[h.ID]) > 0,
				OwnInstances: b.Slots[h.ID],
			})
		}
	}
	return all, nil
}

// readHostUsage returns, by host, the resources that other instance reservations use at the requested dates.
// readHostUsage also returns, in `alone`, the hosts that are allocated as a whole to a reservation of the
// type physical:host. If the end of a lease has failed, the reservations of the lease still use their
// resources.
func readHostUsage(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
) (uses map[int64][]lease.ResourceUsage, alone map[int64]bool, err error) {
	rows, err := tx.Query(ctx, `
		select a.host_id, a.owner = a.reservation_id, lower(a.during), case when e.status = 'ERROR' then $3 else upper(a.during) end,
			a.slots, r.resources
		from host_allocation a
		join reservation r on r.id = a.reservation_id
		join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
		where r.id <> $1 and (a.during && tstzrange($2, $3) or e.status = 'ERROR' and lower(a.during) < $3)`, b.ID, b.from, b.to)
	if err != nil {
		return nil, nil, fmt.Errorf("read usage of hosts: %w", err)
	}
	uses, alone = map[int64][]lease.ResourceUsage{}, map[int64]bool{}
	var host int64
	var whole bool
	var u lease.ResourceUsage
	_, err = pgx.ForEachRow(rows, []any{&host, &whole, &u.From, &u.To, &u.Slots, &u.Resources}, func() error {
		if whole {
			alone[host] = true
		} else {
			uses[host] = append(uses[host], u)
		}
		u.Resources = nil
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read usage of hosts: %w", err)
	}
	return uses, alone, nil
}

// readHostCapacities returns, by host, the capacity for each resource class that an instance needs. The
// result of readHostCapacities does not contain hosts that are too small for one instance, hosts without a
// trait that the flavor requires, and hosts with a trait that the flavor forbids.
func readHostCapacities(
	ctx context.Context,
	tx *transaction,
	d lease.ReservationDraft,
) (map[int64]map[string]int64, error) {
	required, forbidden := []string{}, []string{}
	if d.Flavor != nil {
		r, f := d.Flavor.Traits()
		required, forbidden = append(required, r...), append(forbidden, f...)
	}
	all := map[int64]map[string]int64{}
	var host int64
	var has map[string]int64
	rows, err := tx.Query(ctx, `
		select h.id, jsonb_object_agg(u.key, trunc(u.has))
		from host h
		join provider p on p.uuid = h.provider::text
		cross join lateral (
			select d.key, d.value::numeric as asked, coalesce(host_capacity($2, h.id, d.key), 0) as has,
				(select i.max_unit from inventory i join resource_class c on c.id = i.class_id where i.provider_id = p.id and c.name = d.key) as max_unit
			from jsonb_each_text($1) d) u
		where (select count(*) from provider_trait pt join trait t on t.id = pt.trait_id where pt.provider_id = p.id and t.name = any($3)) = cardinality($3)
			and not exists (select from provider_trait pt join trait t on t.id = pt.trait_id where pt.provider_id = p.id and t.name = any($4))
		group by h.id
		having bool_and(u.has >= u.asked and ($2 <> 'flavor:instance' or u.max_unit >= u.asked))`,
		d.Resources(), d.Type, required, forbidden)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&host, &has}, func() error { all[host], has = has, nil; return nil })
	}
	if err != nil {
		return nil, fmt.Errorf("read capacities of hosts: %w", err)
	}
	return all, nil
}

func (instanceResource) release(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error {
	return releaseHosts(ctx, tx, reservations...)
}
