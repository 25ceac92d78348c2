package leasestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// registeredResource implements the interface resource for reservations of the types network and device,
// whose resources operators register. Placement has no inventory of these resources, so the methods of
// registeredResource that change Placement do nothing.
type registeredResource struct{}

func (registeredResource) allocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	return allocateRegistered(ctx, tx, b, nil)
}

// reallocate keeps those resources of the reservation that meet the requirements and are free at the new
// dates.
func (r registeredResource) reallocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	if err := r.release(ctx, tx, b.ID); err != nil {
		return err
	}
	return allocateRegistered(ctx, tx, b, b.before.ResourceIDs)
}

// allocateRegistered chooses resources for a reservation that already has the resources in `held`, and stores
// the allocations.
func allocateRegistered(ctx context.Context, tx *transaction, b allocationRequest, held []uuid.UUID) error {
	candidates, err := readResourceCandidates(ctx, tx, b)
	if err != nil {
		return err
	}
	if b.shuffled {
		rand.Shuffle(len(candidates),
			func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	}
	picked, err := lease.PickResources(b.ReservationDraft, candidates, held)
	if err != nil {
		return err
	}
	if b.active {
		if err := lease.KeepsHeld(b.ReservationDraft, held, picked); err != nil {
			return err
		}
	}
	// The lock on the rows of the resources prevents a deadlock of two transactions that allocate the same
	// resources. The lock also prevents changes of the resources' properties until this transaction ends.
	if _, err := tx.Exec(ctx, `
		with locked as (select id from reservable_resource where id = any($2) order by id for no key update)
		insert into resource_allocation (reservation_id, resource_id, during)
		select $1, id, tstzrange($3, $4)
		from locked`, b.ID, picked, b.from, b.to); err != nil {
		return fmt.Errorf("allocate resources of the type %s: %w", b.Type, err)
	}
	return checkPicked(ctx, tx, b, picked)
}

// checkPicked returns errTaken if one of the chosen resources was deleted, or if it no longer meets the
// requirements. The caller has locked the resources, so no other transaction can change them any more.
func checkPicked(ctx context.Context, tx *transaction, b allocationRequest, picked []uuid.UUID) error {
	requirements, err := b.Requirements()
	if err != nil {
		return err
	}
	all, err := readResources(ctx, tx, `f.id = any($1)`, picked)
	if err != nil {
		return err
	}
	if len(all) < len(picked) ||
		slices.ContainsFunc(all, func(r lease.ReservableResource) bool { return !r.Meets(requirements) }) {
		return errTaken
	}
	return nil
}

// readResourceCandidates returns the resources of a reservation's type. For each resource,
// readResourceCandidates says whether other reservations have the resource, and whether the resource is free
// at the requested dates. If the end of a lease has failed, the resources of this lease are not free.
func readResourceCandidates(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
) ([]lease.ResourceCandidate, error) {
	all, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (c lease.ResourceCandidate, err error) {
		c.ReservableResource, err = scanResource(row, &c.Booked, &c.Free, &c.Late)
		return c, err
	}, `
		select `+resourceColumns+`, x.booked, not coalesce(x.taken, false), coalesce(x.late, false)
		from reservable_resource f
		cross join lateral (
			select count(*) > 0 as booked, bool_or(a.during && tstzrange($3, $4) or e.status = 'ERROR') as taken,
				bool_or(a.during << tstzrange(now(), null) and l.status <> 'PENDING') as late
			from resource_allocation a
			join reservation r on r.id = a.reservation_id
			join lease l on l.id = r.lease_id
			join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
			where a.resource_id = f.id and r.id <> $2) x
		where f.resource_type = $1
		order by f.created_at, f.id`, b.Type, b.ID, b.from, b.to)
	if err != nil {
		return nil, fmt.Errorf("read free resources of the type %s: %w", b.Type, err)
	}
	return all, nil
}

func (registeredResource) replaceHost(context.Context, *transaction, allocationRequest, int64) (bool, error) {
	return true, nil
}

func (registeredResource) addToInventory(context.Context, *transaction, []leaseReservation) error {
	return nil
}

func (registeredResource) removeFromInventory(context.Context, *transaction, []leaseReservation) error {
	return nil
}

func (registeredResource) missingInInventory(
	context.Context,
	*transaction,
	[]leaseReservation,
) ([]leaseReservation, error) {
	return nil, nil
}

func (registeredResource) release(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error {
	if _, err := tx.Exec(ctx, `delete from resource_allocation where reservation_id = any($1)`, reservations); err != nil {
		return fmt.Errorf("release resources of reservations %s: %w", reservations, err)
	}
	return nil
}
