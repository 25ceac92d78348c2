package leasestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// resource reads and writes the database rows of one resource type; lease.ResourceType contains the rules of
// the type. The caller of any method of the interface must already have locked the leases of the reservations
// in the transaction.
type resource interface {
	// allocate chooses free resources for a new reservation and stores the allocations.
	allocate(ctx context.Context, tx *transaction, b allocationRequest) error
	// reallocate adapts the allocations of a reservation to new dates, a new size or new requirements. If an
	// active reservation cannot keep all its resources, reallocate returns a *lease.Fault.
	reallocate(ctx context.Context, tx *transaction, b allocationRequest) error
	// replaceHost releases the reservation's resources on a failed host and allocates the same amount on
	// other hosts. If the other hosts do not have enough free resources, replaceHost allocates nothing and
	// the result `whole` is false. If the reservation's resources do not belong to hosts, as with floating
	// IPs, replaceHost changes nothing.
	replaceHost(ctx context.Context, tx *transaction, b allocationRequest, host int64) (whole bool, err error)
	// addToInventory adds the resources of reservations to Placement. If another consumer uses one of the
	// resources, addToInventory returns a *lease.Fault.
	addToInventory(ctx context.Context, tx *transaction, all []leaseReservation) error
	// removeFromInventory removes the resources of reservations from Placement. If a server still uses one of
	// the resources, removeFromInventory returns a *lease.Fault.
	removeFromInventory(ctx context.Context, tx *transaction, all []leaseReservation) error
	// missingInInventory returns those reservations whose resources in Placement differ from the resources
	// that are allocated to the reservation in berth's database.
	missingInInventory(
		ctx context.Context,
		tx *transaction,
		all []leaseReservation,
	) ([]leaseReservation, error)
	// release deletes all allocations of the reservations from berth's database. When a reservation ends,
	// `release` is called last, after the resources are removed from Placement.
	release(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error
}

var resources = map[string]resource{
	lease.PhysicalHost:    hostResource{},
	lease.VirtualInstance: instanceResource{},
	lease.FlavorInstance:  instanceResource{},
	lease.FloatingIP:      floatingIPResource{},
	lease.NetworkSegment:  registeredResource{},
	lease.Device:          registeredResource{},
}

// lockOrder is the order in which a transaction changes the resources of several reservation types. All
// transactions change resources in the order of lockOrder, because a common order avoids deadlocks. In
// lockOrder the type physical:host comes first, because changes of physical:host lock consumers before
// providers, while changes of the other types lock only providers.
var lockOrder = []string{
	lease.PhysicalHost,
	lease.VirtualInstance,
	lease.FlavorInstance,
	lease.FloatingIP,
	lease.NetworkSegment,
	lease.Device,
}

// leaseReservation is a reservation together with its lease.
type leaseReservation struct {
	lease.Reservation
	lease lease.Lease
}

// reservationsOf returns the reservations of the leases, each with its lease.
func reservationsOf(leases ...lease.Lease) []leaseReservation {
	var all []leaseReservation
	for _, l := range leases {
		for _, r := range l.Reservations {
			all = append(all, leaseReservation{r, l})
		}
	}
	return all
}

// withActor returns a context in which the lease is the actor of the following writes, so that the generation
// history records the lease.
func (h leaseReservation) withActor(ctx context.Context) context.Context {
	return db.WithActor(ctx, "lease "+h.lease.ID.String())
}

// forEachType calls f with the reservations of each resource type, in lockOrder.
func forEachType(all []leaseReservation, f func(res resource, reservations []leaseReservation) error) error {
	for _, typ := range lockOrder {
		var reservations []leaseReservation
		for _, h := range all {
			if h.Type == typ {
				reservations = append(reservations, h)
			}
		}
		if len(reservations) == 0 {
			continue
		}
		if err := f(resources[typ], reservations); err != nil {
			return err
		}
	}
	return nil
}

// addToInventory adds the resources of reservations to Placement, for reservations of all types.
func addToInventory(ctx context.Context, tx *transaction, all ...leaseReservation) error {
	return forEachType(all, func(res resource, reservations []leaseReservation) error {
		return res.addToInventory(ctx, tx, reservations)
	})
}

// removeFromInventory removes the resources of reservations from Placement, for reservations of all types.
func removeFromInventory(ctx context.Context, tx *transaction, all ...leaseReservation) error {
	return forEachType(all, func(res resource, reservations []leaseReservation) error {
		return res.removeFromInventory(ctx, tx, reservations)
	})
}

// allocationRequest contains the requested state of a reservation, the state of the reservation before the
// change, and the dates of the allocation.
type allocationRequest struct {
	lease.Reservation                   // the requested state
	before            lease.Reservation // the state before the change
	from, to          time.Time
	active            bool
	shuffled          bool  // choose at random among equally suitable hosts
	avoid             int64 // a host that must not be chosen; 0: none
}

// newAllocationRequest returns a request for the dates of the lease plus the cleaning time. If the start of
// the lease is in the past, the allocation begins now.
func (s *Store) newAllocationRequest(
	l lease.Lease,
	was, is lease.Reservation,
	now time.Time,
) allocationRequest {
	from := slices.MaxFunc([]time.Time{l.StartAt, now}, time.Time.Compare)
	to := slices.MaxFunc([]time.Time{l.EndAt, from.Add(time.Microsecond)}, time.Time.Compare)
	return allocationRequest{
		Reservation: is,
		before:      was,
		from:        from,
		to:          to.Add(s.config.Limits.CleaningTime),
		active:      l.Status == lease.Active,
		shuffled:    s.config.Limits.RandomHosts,
	}
}

// allocateAll allocates the resources of all reservations of a new lease.
func (s *Store) allocateAll(ctx context.Context, tx *transaction, l lease.Lease, now time.Time) error {
	if len(l.Reservations) > 1 { // a single reservation is matched before it locks its hosts anyway
		if err := tx.matchInAdvance(ctx, l, l.Reservations); err != nil {
			return err
		}
		for _, r := range l.Reservations {
			if err := tx.matches[requirementsKeyOf(r.ReservationDraft)].err; err != nil {
				return err
			}
		}
	}
	for _, i := range lease.AllocationOrder(l.Reservations) {
		r := l.Reservations[i]
		if err := resources[r.Type].allocate(ctx, tx, s.newAllocationRequest(l, r, r, now)); err != nil {
			return err
		}
	}
	return nil
}

// reallocateAll adapts the allocations of all reservations to a changed lease. If the lease is active,
// reallocateAll also updates Placement, and the lease's workflow later updates Nova and Neutron.
func (s *Store) reallocateAll(
	ctx context.Context,
	tx *transaction,
	was, is lease.Lease,
	now time.Time,
) error {
	var changed []lease.Reservation
	for i, r := range is.Reservations {
		if !lease.KeepsResources(was, is, i) {
			changed = append(changed, r)
		}
	}
	if err := tx.matchInAdvance(ctx, is, changed); err != nil {
		return err
	}
	for _, i := range lease.AllocationOrder(is.Reservations) {
		r := is.Reservations[i]
		if lease.KeepsResources(was, is, i) {
			if err := s.shortenAllocations(ctx, tx, is, r); err != nil {
				return err
			}
			continue
		}
		if err := resources[r.Type].reallocate(ctx, tx, s.newAllocationRequest(is, was.Reservations[i], r, now)); err != nil {
			return err
		}
		if is.Status != lease.Active {
			continue
		}
		if err := updateInventory(ctx, tx, is, r); err != nil {
			return withoutProviders(ctx, r, err)
		}
	}
	return nil
}

// withoutProviders returns the error of a change that a client has requested. The client may see neither the
// hosts nor the other leases that Placement's own error names, so berth only logs this error.
func withoutProviders(ctx context.Context, r lease.Reservation, err error) error {
	var fault *lease.Fault
	if !errors.As(err, &fault) || fault.Kind != lease.HostInUse {
		return err
	}
	slog.WarnContext(ctx, "Placement refuses a change of a reservation", "reservation", r.ID, "error", err)
	return lease.Faultf(lease.HostInUse,
		"The change of reservation %s needs a host that is still in use; try again later.", r.ID)
}

// shortenAllocations shortens the allocations of a reservation to the lease's new dates. The new dates must
// be within the old dates; therefore the shortened allocations cannot conflict with another reservation.
func (s *Store) shortenAllocations(
	ctx context.Context,
	tx *transaction,
	l lease.Lease,
	r lease.Reservation,
) error {
	for _, table := range []string{"host_allocation", "floatingip_allocation", "resource_allocation"} {
		if _, err := tx.Exec(ctx, `
			with part as (
				select ctid as row, least(greatest(lower(during), $2), upper(during) - interval '1 microsecond') as begins
				from `+table+`
				where reservation_id = $1)
			update `+table+` a
			set during = tstzrange(part.begins, greatest(least(upper(a.during), $3), part.begins + interval '1 microsecond'))
			from part
			where a.ctid = part.row`, r.ID, l.StartAt, l.EndAt.Add(s.config.Limits.CleaningTime)); err != nil {
			return fmt.Errorf("shorten reservation %s: %w", r.ID, err)
		}
	}
	return nil
}

// updateInventory updates the resources of an active reservation in Placement, and increments the revision of
// the reservation.
func updateInventory(ctx context.Context, tx *transaction, l lease.Lease, r lease.Reservation) error {
	if err := addToInventory(ctx, tx, leaseReservation{r, l}); err != nil {
		return err
	}
	return incrementRevision(ctx, tx, r)
}

// incrementRevision increments the revision of a reservation (the column `shape`), so that the lease's
// workflow updates Nova, Neutron and, if needed, Placement.
func incrementRevision(ctx context.Context, tx *transaction, r lease.Reservation) error {
	if _, err := tx.Exec(ctx, `update reservation set shape = shape + 1 where id = $1`, r.ID); err != nil {
		return fmt.Errorf("increment revision of reservation %s: %w", r.ID, err)
	}
	return nil
}

// allocationLock is the key of an advisory lock. A transaction that must repeat its allocation, because
// another transaction has allocated the same resources first, acquires this lock before the repetition.
// Transactions that repeat their allocations therefore run one after the other.
const allocationLock = 0x6265727468

// maxAllocationAttempts is the maximum number of times that retryTaken runs an allocation.
const maxAllocationAttempts = 50

// errTaken means that a chosen host or other resource was changed or deleted before this transaction locked
// it, so that another one must be chosen.
var errTaken = errors.New("a chosen host has changed")

// retryTaken runs f, which allocates resources. If another transaction has allocated the same resources
// first, the constraints of the tables reject the allocations of f. retryTaken then rolls back the changes of
// f and runs f again, so that f sees the current state of the database. Only the search for a start, which
// keeps no hosts, does not match requirements again.
func retryTaken(ctx context.Context, tx *transaction, f func(tx *transaction) error) error {
	for range maxAllocationAttempts {
		err := tx.savepoint(ctx, f)
		lost := errors.Is(err, errTaken) ||
			slices.ContainsFunc([]string{"host_allocation_once", "host_allocation_room",
				"floatingip_allocation_once", "resource_allocation_once"}, func(constraint string) bool { return db.Violates(err, constraint) })
		if !lost {
			return err
		}
		if tx.search == nil {
			clear(tx.matches)
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, allocationLock); err != nil {
			return fmt.Errorf("lock allocations: %w", err)
		}
	}
	return fmt.Errorf("%w: other requests have allocated the same resources first; try again", db.ErrConflict)
}
