package leasestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// resource is what one type of resource does with rows: the part of the plug-in that belongs to lease.Resource with
// the same type. Each method is a step of a transaction that holds the lock of the reservation's lease.
type resource interface {
	// allocate chooses what a new reservation gets and writes it down.
	allocate(ctx context.Context, tx *transaction, b allocationRequest) error
	// reallocate brings what a reservation has to other dates, another size or other requirements. One that is active
	// keeps all that it has, or is refused.
	reallocate(ctx context.Context, tx *transaction, b allocationRequest) error
	// replaceHost gives up a host that is lost, with all that the reservation has there, and books as much elsewhere. It
	// tells whether nothing is missing then; what cannot be had is given up. What lives on no host loses nothing.
	replaceHost(ctx context.Context, tx *transaction, b allocationRequest, host int64) (whole bool, err error)
	// addToInventory makes inventory say what the reservations have; a *lease.Fault means that somebody else is in the way of one.
	addToInventory(ctx context.Context, tx *transaction, all []leaseReservation) error
	// removeFromInventory makes inventory say that they have nothing; a *lease.Fault means that somebody still uses what one has.
	removeFromInventory(ctx context.Context, tx *transaction, all []leaseReservation) error
	// missingInInventory returns those of which inventory does not say what they have.
	missingInInventory(ctx context.Context, tx *transaction, all []leaseReservation) ([]leaseReservation, error)
	// release gives up all that the reservations have: the last act of their end.
	release(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error
}

var resources = map[string]resource{
	lease.PhysicalHost:    hostResource{},
	lease.VirtualInstance: instanceResource{},
	lease.FlavorInstance:  instanceResource{},
	lease.FloatingIP:      floatingIPResource{},
}

// lockOrder is in which order transactions come to the resources of several types: whole hosts lock consumers in
// inventory before providers, the others providers alone.
var lockOrder = []string{lease.PhysicalHost, lease.VirtualInstance, lease.FlavorInstance, lease.FloatingIP}

// leaseReservation is a reservation with its lease.
type leaseReservation struct {
	lease.Reservation
	lease lease.Lease
}

// reservationsOf are the reservations of leases.
func reservationsOf(leases ...lease.Lease) []leaseReservation {
	var all []leaseReservation
	for _, l := range leases {
		for _, r := range l.Reservations {
			all = append(all, leaseReservation{r, l})
		}
	}
	return all
}

// withActor is a context in which the reservation's lease is who acts.
func (h leaseReservation) withActor(ctx context.Context) context.Context {
	return db.WithActor(ctx, "lease "+h.lease.ID.String())
}

// forEachType runs f for each type of resource with those reservations that are of it.
func forEachType(all []leaseReservation, f func(of resource, those []leaseReservation) error) error {
	for _, typ := range lockOrder {
		var those []leaseReservation
		for _, h := range all {
			if h.Type == typ {
				those = append(those, h)
			}
		}
		if len(those) == 0 {
			continue
		}
		if err := f(resources[typ], those); err != nil {
			return err
		}
	}
	return nil
}

// addToInventory makes inventory say what reservations have.
func addToInventory(ctx context.Context, tx *transaction, all ...leaseReservation) error {
	return forEachType(all, func(of resource, those []leaseReservation) error { return of.addToInventory(ctx, tx, those) })
}

// removeFromInventory makes inventory say that they have nothing.
func removeFromInventory(ctx context.Context, tx *transaction, all ...leaseReservation) error {
	return forEachType(all, func(of resource, those []leaseReservation) error { return of.removeFromInventory(ctx, tx, those) })
}

// allocationRequest is what a reservation asks for and has.
type allocationRequest struct {
	lease.Reservation                   // as it shall be
	before            lease.Reservation // as it is
	from, to          time.Time
	active            bool
	shuffled          bool // what is equally good is chosen at random
}

// newAllocationRequest is what a reservation asks for from now on, and for the cleaning after it: nobody can book the past.
func (s *Store) newAllocationRequest(l lease.Lease, was, is lease.Reservation, now time.Time) allocationRequest {
	from := slices.MaxFunc([]time.Time{l.StartAt, now}, time.Time.Compare)
	to := slices.MaxFunc([]time.Time{l.EndAt, from.Add(time.Microsecond)}, time.Time.Compare)
	return allocationRequest{Reservation: is, before: was, from: from, to: to.Add(s.config.Limits.CleaningTime), active: l.Status == lease.Active,
		shuffled: s.config.Limits.RandomHosts}
}

// allocateAll chooses what every reservation of a new lease gets.
func (s *Store) allocateAll(ctx context.Context, tx *transaction, l lease.Lease, now time.Time) error {
	for _, r := range l.Reservations {
		if err := resources[r.Type].allocate(ctx, tx, s.newAllocationRequest(l, r, r, now)); err != nil {
			return err
		}
	}
	return nil
}

// reallocateAll moves every reservation to the new dates. Inventory hears at once of what an active lease has got, and
// the cloud from its workflow.
func (s *Store) reallocateAll(ctx context.Context, tx *transaction, was, is lease.Lease, now time.Time) error {
	for i, r := range is.Reservations {
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
			return err
		}
	}
	return nil
}

// shortenAllocations lets a reservation have what it has for a part of its time, and for nothing else: nobody can be in the way.
func (s *Store) shortenAllocations(ctx context.Context, tx *transaction, l lease.Lease, r lease.Reservation) error {
	for _, table := range []string{"host_allocation", "floatingip_allocation"} {
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

// updateInventory tells inventory what an active reservation has now, and remembers that the cloud has to hear of it.
func updateInventory(ctx context.Context, tx *transaction, l lease.Lease, r lease.Reservation) error {
	if err := addToInventory(ctx, tx, leaseReservation{r, l}); err != nil {
		return err
	}
	return incrementRevision(ctx, tx, r)
}

// incrementRevision remembers that the cloud, and perhaps inventory, has to hear what a reservation has become.
func incrementRevision(ctx context.Context, tx *transaction, r lease.Reservation) error {
	if _, err := tx.Exec(ctx, `update reservation set shape = shape + 1 where id = $1`, r.ID); err != nil {
		return fmt.Errorf("reservation %s: %w", r.ID, err)
	}
	return nil
}

// allocationLock is the advisory lock that those take who lost a race for something, so that they race no more among
// themselves.
const allocationLock = 0x6265727468

// maxAllocationAttempts is how often a choice is made anew after others took it.
const maxAllocationAttempts = 50

// errTaken means that what was chosen was taken, or changed its properties, before it could be booked.
var errTaken = errors.New("taken meanwhile")

// retryTaken runs f, which books something, until nobody else takes its choice. The tables refuse what overlaps; f's
// writes are then undone and it chooses anew, from what there is now.
func retryTaken(ctx context.Context, tx *transaction, f func(tx *transaction) error) error {
	for range maxAllocationAttempts {
		err := tx.savepoint(ctx, f)
		lost := errors.Is(err, errTaken) || slices.ContainsFunc([]string{"host_allocation_once", "host_allocation_room",
			"floatingip_allocation_once"}, func(constraint string) bool { return db.Violates(err, constraint) })
		if !lost {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, allocationLock); err != nil {
			return fmt.Errorf("queue for resources: %w", err)
		}
	}
	return fmt.Errorf("%w: the resources are being taken by others; try again", db.ErrConflict)
}
