package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store"
)

// Lease looks at a lease.
func (a *Activities) Lease(ctx context.Context, key string) (lease.Lease, error) {
	id, err := uuidOf(key)
	if err != nil {
		return lease.Lease{}, err
	}
	l, err := a.Store.Lease(ctx, id)
	if err != nil {
		return l, verdict(err)
	}
	if due := lease.Next(l, time.Now()); due.Step == lease.Wait {
		l.Ahead, err = a.Store.Ahead(ctx, l.ID, due.At)
	}
	return a.governed(l), verdict(err)
}

// governed is a lease with what the operator decides about its steps, and without what only matters to who books: of
// that a history would have a copy for every look.
func (a *Activities) governed(l lease.Lease) lease.Lease {
	l.Patience = a.Patience
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

// advanceFor is how long one attempt goes on with what is due, well within workflows.QuickAttempt.
const advanceFor = 2 * time.Second

// AdvanceLeases waits for that instant, then starts and ends all leases of which that is due and returns how many. Those
// who ask meanwhile are answered together.
func (a *Activities) AdvanceLeases(ctx context.Context, at time.Time) (int, error) {
	left, err := a.Store.Until(ctx, at)
	if err != nil {
		return 0, verdict(err)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(max(left, time.Until(at))):
	}
	n, err, _ := a.advancing.Do("", func() (any, error) {
		tell := a.bring
		if a.Cloud == nil {
			tell = nil
		}
		return a.Store.AdvanceLeases(context.WithoutCancel(ctx), tell, advanceFor)
	})
	return n.(int), verdict(err)
}

// bringFor is how long leases that are brought into the cloud together may take, so that an attempt ends in time.
const bringFor = 1500 * time.Millisecond

// bring does for some leases at the same time what their steps mean to the cloud, and returns those of which all went
// well in time.
func (a *Activities) bring(ctx context.Context, begun []store.Begun) []store.Begun {
	ctx, cancel := context.WithTimeout(ctx, bringFor)
	defer cancel()
	well := make([]bool, len(begun))
	var all sync.WaitGroup
	for i, b := range begun {
		all.Go(func() { well[i] = a.bringOne(ctx, b) == nil })
	}
	all.Wait()
	told := slices.Clone(begun)[:0]
	for i, b := range begun {
		if well[i] {
			told = append(told, b)
		}
	}
	return told
}

func (a *Activities) bringOne(ctx context.Context, b store.Begun) error {
	do := a.WireReservation
	if b.Step == lease.End {
		do = a.UnwireReservation
	}
	for _, r := range b.Reservations {
		if !slices.Contains(a.Cloud.Types(), r.Type) {
			continue
		}
		if err := do(ctx, r.ID); err != nil {
			return err
		}
	}
	return nil
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
