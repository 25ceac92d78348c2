package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"berth/internal/lease"
	"berth/internal/store"
)

// Cloud is where reservations become something that servers can use. What is done there may be repeated.
type Cloud interface {
	// Types are those of reservations that are anything there.
	Types() []string
	// Provide makes it match a claim.
	Provide(ctx context.Context, c lease.Claim) (lease.Mark, error)
	// Withdraw leaves nothing of a claim; it fails while servers are still going.
	Withdraw(ctx context.Context, c lease.Claim) error
	// BeforeEnd does what a reservation asked for shortly before its end.
	BeforeEnd(ctx context.Context, c lease.Claim) error
	// Pool brings a host that can be leased into the pool, if no reservation has it; Unpool out of the pool.
	Pool(ctx context.Context, host string) error
	Unpool(ctx context.Context, host string) error
}

// WireReservation gives a reservation what it holds, in inventory and in the cloud, and takes it back if the lease was
// given up meanwhile. Wiring twice is fine. Unwilling means that somebody else is in the way, or the cloud in trouble.
func (a *Activities) WireReservation(ctx context.Context, id uuid.UUID) error {
	defer alive(ctx)()
	if err := a.Store.WireReservation(ctx, id); err != nil {
		return verdict(err)
	}
	return a.inform(ctx, id, a.Store.Claim, func(ctx context.Context, c lease.Claim) error {
		mark, err := a.Cloud.Provide(ctx, c)
		if err != nil {
			return unwilling(err)
		}
		err = a.Store.MarkReservation(ctx, id, mark)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			err = errors.Join(err, a.Cloud.Withdraw(ctx, c))
		}
		return verdict(err)
	})
}

// UnwireReservation takes it back, first in the cloud, where servers may have to go. Unwiring twice is fine.
func (a *Activities) UnwireReservation(ctx context.Context, id uuid.UUID) error {
	defer alive(ctx)()
	err := a.inform(ctx, id, a.Store.LeavingClaim, func(ctx context.Context, c lease.Claim) error { return unwilling(a.Cloud.Withdraw(ctx, c)) })
	var app *temporal.ApplicationError
	if err != nil && !(errors.As(err, &app) && app.Type() == NotFound) {
		return err
	}
	return verdict(a.Store.UnwireReservation(ctx, id))
}

// PrepareEnd does what a reservation asked for shortly before its end.
func (a *Activities) PrepareEnd(ctx context.Context, id uuid.UUID) error {
	defer alive(ctx)()
	return a.inform(ctx, id, a.Store.Claim, func(ctx context.Context, c lease.Claim) error {
		c.BeforeEnd = a.beforeEnd(c.Reservation)
		return unwilling(a.Cloud.BeforeEnd(ctx, c))
	})
}

// inform reads a claim and tells it to the cloud, if that is anything to it: briefly where the workflow waits for it.
func (a *Activities) inform(ctx context.Context, id uuid.UUID, read func(context.Context, uuid.UUID) (lease.Claim, error),
	say func(context.Context, lease.Claim) error) error {
	if a.Cloud == nil {
		return nil
	}
	c, err := read(ctx, id)
	if err != nil || !slices.Contains(a.Cloud.Types(), c.Type) {
		return verdict(err)
	}
	ctx, cancel := attempt(ctx, CloudCall)
	defer cancel()
	return say(ctx, c)
}

// attempt ends what one attempt asks of a neighbour: soon where a workflow waits for it in place, else after that time.
func attempt(ctx context.Context, regular time.Duration) (context.Context, context.CancelFunc) {
	if activity.IsActivity(ctx) && !activity.GetInfo(ctx).IsLocalActivity {
		return context.WithTimeout(ctx, regular)
	}
	return context.WithTimeout(ctx, BriefCall)
}

// CloudCall is how long one attempt may tell the cloud about one reservation, which may be hundreds of hosts.
const CloudCall = 90 * time.Second

// unwilling is an error that a workflow asks again about, for as long as it sees fit.
func unwilling(err error) error {
	if err == nil {
		return nil
	}
	const longest = 1000 // answers of neighbours are quoted in them
	text := err.Error()
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return temporal.NewApplicationErrorWithOptions(text, Unwilling, temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
}
