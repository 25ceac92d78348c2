package activities

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
)

// Lease looks at a lease. Of many that wake together those who come while somebody looks are looked at together.
func (a *Activities) Lease(ctx context.Context, key string) (lease.Lease, error) {
	id, err := uuidOf(key)
	if err != nil {
		return lease.Lease{}, err
	}
	l, err := a.looks.at(ctx, id, a.look)
	return a.governed(l), verdict(err)
}

// look reads leases and, of those that wait, who is due at the same instant and comes first.
func (a *Activities) look(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
	found, err := a.Store.LeasesOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	all, waiting := map[uuid.UUID]lease.Lease{}, map[uuid.UUID]time.Time{}
	for _, l := range found {
		all[l.ID] = l
		if due := lease.Next(l, time.Now()); due.Step == lease.Wait {
			waiting[l.ID] = due.At
		}
	}
	ahead, err := a.Store.Ahead(ctx, waiting)
	for id, n := range ahead {
		l := all[id]
		l.Ahead = n
		all[id] = l
	}
	return all, err
}

// governed is a lease with what the operator decides about its steps, and without what only matters to who books: of
// that a history would have a copy for every look.
func (a *Activities) governed(l lease.Lease) lease.Lease {
	l.Patience, l.Reservations = a.Patience, slices.Clone(l.Reservations) // others may have seen the same lease
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.ReservationDraft = lease.ReservationDraft{Type: r.Type, BeforeEnd: a.beforeEnd(*r)}
		r.Slots, r.Addresses = nil, nil
	}
	return l
}

// beforeEnd is what shall happen shortly before a reservation's end.
func (a *Activities) beforeEnd(r lease.Reservation) string {
	if a.Snapshot && r.BeforeEnd == "default" {
		return "snapshot"
	}
	return r.BeforeEnd
}

// BeginLease enters the step's transitional status. Beginning what has begun is fine.
func (a *Activities) BeginLease(ctx context.Context, id uuid.UUID, step lease.Step) (lease.Lease, error) {
	l, err := a.Store.BeginLease(ctx, id, step)
	return a.governed(l), verdict(err)
}

// FinishLease enters the step's stable status; failed tells by reservation which could not be wired, and why.
func (a *Activities) FinishLease(ctx context.Context, id uuid.UUID, step lease.Step, failed map[string]string) error {
	reasons := make(map[uuid.UUID]string, len(failed))
	for key, reason := range failed {
		reservation, err := uuidOf(key)
		if err != nil {
			return err
		}
		reasons[reservation] = reason
	}
	_, err := a.Store.FinishLease(ctx, id, step, reasons)
	return verdict(err)
}
