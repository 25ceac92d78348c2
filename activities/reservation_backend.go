package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

// backendTimeout limits the Nova and Neutron calls for leases that one sweep advances together, because a call that hangs delays the
// other leases of the sweep.
const backendTimeout = 3 * time.Second

// reservationBackend makes the Nova and Neutron calls for the steps of several leases concurrently.
type reservationBackend struct{ *Activities }

// Apply makes the calls of the given steps concurrently. Apply returns the steps whose calls have all succeeded within backendTimeout,
// with the IDs that Nova and Neutron have assigned.
func (b reservationBackend) Apply(ctx context.Context, started []leasestore.StartedStep) []leasestore.StartedStep {
	succeeded := make([]bool, len(started))
	steps := slices.Clone(started)
	b.forEach(ctx, steps, func(ctx context.Context, i int) {
		steps[i].CloudIDs = map[uuid.UUID]lease.CloudIDs{}
		succeeded[i] = b.apply(ctx, steps[i]) == nil
	})
	i := -1
	return slices.DeleteFunc(steps, func(leasestore.StartedStep) bool { i++; return !succeeded[i] })
}

func (b reservationBackend) apply(ctx context.Context, step leasestore.StartedStep) error {
	for _, c := range step.CloudReservations {
		if !slices.Contains(b.Cloud.ResourceTypes(), c.Type) {
			continue
		}
		var err error
		switch step.Step {
		case lease.StepStart:
			step.CloudIDs[c.ID], err = b.Cloud.Provision(ctx, c)
		case lease.StepBeforeEnd:
			c.BeforeEnd = b.beforeEndAction(c.Reservation)
			err = b.Cloud.BeforeEnd(ctx, c)
		case lease.StepEnd:
			err = b.Cloud.Deprovision(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Undo removes the reservations of leases that were deleted while Apply provisioned them. Undo ignores errors, because the workflow that
// deletes a lease later removes what Undo has left in Nova and Neutron.
func (b reservationBackend) Undo(ctx context.Context, started []leasestore.StartedStep) {
	b.forEach(ctx, started, func(ctx context.Context, i int) {
		for _, c := range started[i].CloudReservations {
			_ = b.Cloud.Deprovision(ctx, c)
		}
	})
}

// forEach calls the function `do` for every step concurrently.
func (b reservationBackend) forEach(ctx context.Context, steps []leasestore.StartedStep, do func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i := range steps {
		all.Go(func() { do(ctx, i) })
	}
	all.Wait()
}
