package activities

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
)

// ReadLease reads a lease. If ReadLease is called while a query of leases runs, the call waits until the
// query ends; the next query then reads the leases of all waiting calls together.
func (a *Activities) ReadLease(ctx context.Context, key string) (lease.Lease, error) {
	id, err := parseUUID(key)
	if err != nil {
		return lease.Lease{}, err
	}
	l, err := a.leases.load(ctx, id)
	return a.withOperatorSettings(l), classify(err)
}

// readLeases reads leases. For each lease that waits for its start or end, readLeases also sets the lease's
// rank: the number of leases that are due at the same instant and are ordered before this lease.
func (a *Activities) readLeases(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
	found, err := a.Store.Lease.LeasesByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	all, waiting := map[uuid.UUID]lease.Lease{}, map[uuid.UUID]time.Time{}
	for _, l := range found {
		all[l.ID] = l
		if due := lease.Next(l, time.Now()); due.Step == lease.StepWait {
			waiting[l.ID] = due.At
		}
	}
	ranks, err := a.Store.Lease.LeaseRanks(ctx, waiting)
	for id, rank := range ranks {
		l := all[id]
		l.Rank = rank
		all[id] = l
	}
	return all, err
}

func (a *Activities) readProjects(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	return a.Store.Lease.LeaseProjects(ctx, ids)
}

// withOperatorSettings returns a copy of a lease with the operator's settings for the steps of the lease.
// withOperatorSettings omits the fields that no step needs, because the history of the lease's workflow
// stores every lease that ReadLease returns.
func (a *Activities) withOperatorSettings(l lease.Lease) lease.Lease {
	// other callers share the same lease
	l.CloudRetryTime, l.Reservations = a.CloudRetryTime, slices.Clone(l.Reservations)
	if a.HideProjects {
		l.Project = "" // the workflow needs it only for a search attribute
	}
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.ReservationDraft = lease.ReservationDraft{Type: r.Type, BeforeEnd: a.beforeEndAction(*r)}
		r.Slots, r.Addresses = nil, nil
	}
	return l
}

// beforeEndAction returns the action before the end of a reservation.
func (a *Activities) beforeEndAction(r lease.Reservation) string {
	if a.SnapshotByDefault && r.BeforeEnd == "default" {
		return "snapshot"
	}
	return r.BeforeEnd
}

// BeginLease puts the lease into the transitional status of a step. A repeated call is harmless.
func (a *Activities) BeginLease(ctx context.Context, id uuid.UUID, step lease.Step) (lease.Lease, error) {
	l, err := a.Store.Lease.BeginLease(ctx, id, step)
	return a.withOperatorSettings(l), classify(err)
}

// FinishLease puts the lease into the stable status of a step. The parameter `failed` maps the ID of each
// failed reservation to its error text.
func (a *Activities) FinishLease(
	ctx context.Context,
	id uuid.UUID,
	step lease.Step,
	failed map[string]string,
) error {
	reasons := make(map[uuid.UUID]string, len(failed))
	for key, reason := range failed {
		reservation, err := parseUUID(key)
		if err != nil {
			return err
		}
		reasons[reservation] = reason
	}
	_, err := a.Store.Lease.FinishLease(ctx, id, step, reasons)
	return classify(err)
}
