package activities

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/panics"
	"berth/internal/store/leasestore"
)

// reservationBackend makes the Nova and Neutron calls for the steps of several leases concurrently.
type reservationBackend struct {
	*Activities
	// record records a failed call for a reservation.
	record func(ctx context.Context, reservation uuid.UUID, err error) error
	// keepLeftover stores a reservation whose removal has failed.
	keepLeftover func(ctx context.Context, c lease.CloudReservation, err error)
}

// Apply makes the calls of the given steps concurrently. Apply returns the steps whose calls have all
// succeeded within Timeouts.Round, with the IDs that Nova and Neutron have assigned.
func (b reservationBackend) Apply(
	ctx context.Context,
	started []leasestore.StartedStep,
) []leasestore.StartedStep {
	succeeded := make([]bool, len(started))
	steps := slices.Clone(started)
	b.forEach(ctx, steps, func(ctx context.Context, i int) {
		steps[i].CloudIDs = map[uuid.UUID]lease.CloudIDs{}
		err := b.apply(ctx, steps[i])
		succeeded[i] = err == nil
	})
	i := -1
	return slices.DeleteFunc(steps, func(leasestore.StartedStep) bool { i++; return !succeeded[i] })
}

func (b reservationBackend) apply(ctx context.Context, step leasestore.StartedStep) error {
	for i, c := range step.CloudReservations {
		if !slices.Contains(b.Cloud.ResourceTypes(), c.Type) {
			continue
		}
		// the argument of Apply contains the same element, which gets the IDs that Undo needs
		if err := b.applyTo(ctx, step, &step.CloudReservations[i]); err != nil {
			return b.record(ctx, c.ID, namedCall(err))
		}
	}
	return nil
}

// applyTo makes the calls of a step for one reservation.
func (b reservationBackend) applyTo(
	ctx context.Context,
	step leasestore.StartedStep,
	c *lease.CloudReservation,
) (err error) {
	defer panics.Recover(ctx, "a call for a reservation", &err)
	switch step.Step {
	case lease.StepStart:
		step.CloudIDs[c.ID], err = b.provisionAndKeepIDs(ctx, c)
		return err
	case lease.StepBeforeEnd:
		warned := *c
		warned.BeforeEnd = b.beforeEndAction(c.Reservation)
		return b.Cloud.BeforeEnd(ctx, warned)
	case lease.StepEnd:
		return b.deprovisionAtEnd(ctx, *c)
	}
	return nil
}

// Undo removes the reservations of leases that were deleted while Apply provisioned them. If a removal fails,
// the sweep (clearLeftovers) repeats it, because the workflow of the lease can have ended already.
func (b reservationBackend) Undo(ctx context.Context, started []leasestore.StartedStep) {
	b.forEach(ctx, started, func(ctx context.Context, i int) {
		for _, c := range started[i].CloudReservations {
			if err := b.deprovision(ctx, c); err != nil {
				b.keepLeftover(ctx, c, err)
			}
		}
	})
}

// deprovision removes one reservation.
func (b reservationBackend) deprovision(ctx context.Context, c lease.CloudReservation) (err error) {
	defer panics.Recover(ctx, "the removal of a reservation", &err)
	return b.Cloud.Deprovision(ctx, c)
}

// forEach calls the function `do` for every step concurrently.
func (b reservationBackend) forEach(
	ctx context.Context,
	steps []leasestore.StartedStep,
	do func(ctx context.Context, i int),
) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeouts.Round)
	defer cancel()
	var all sync.WaitGroup
	for i := range steps {
		all.Go(func() {
			defer panics.Recover(ctx, "a step of a lease", new(error))
			do(ctx, i)
		})
	}
	all.Wait()
}
