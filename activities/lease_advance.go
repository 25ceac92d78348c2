package activities

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"berth/internal/store/leasestore"
)

// AdvanceLeases waits until the given time, then starts and ends all leases that are due. Concurrent calls to
// AdvanceLeases share this work, in rounds: a round advances a batch of leases, and the last round is the one
// that finds no due lease. AdvanceLeases returns how many leases the rounds have advanced so far. Rounds that
// take longer than Timeouts.Advance continue after their callers have returned.
func (a *Activities) AdvanceLeases(ctx context.Context, at time.Time) (int, error) {
	left, err := a.Store.Lease.TimeUntil(ctx, at)
	if err != nil {
		return 0, classify(err)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(max(left, time.Until(at))):
	}
	background := context.WithoutCancel(ctx)
	rounds := a.leaseRounds.Join(func() (completed int, found bool, err error) {
		started, finished, err := a.advanceDueLeases(background)
		return finished, started > 0, err
	})
	select {
	case <-rounds.Done():
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(a.Timeouts.Advance):
	}
	advanced, err := rounds.Progress()
	return advanced, classify(err)
}

// advanceDueLeases performs one round. advanceDueLeases first expires the leases that could not start before
// their end because another lease held a host; such a lease would delay the next leases of its other hosts.
// If there are no such leases, advanceDueLeases begins the steps of some due leases in one transaction, makes
// the Nova and Neutron calls of these steps, and finishes the steps in a second transaction. If a step fails
// or the process crashes, the lease stays in its transitional status (such as STARTING), and another process
// (see TakeOverLeases) or the lease's own workflow completes the step. advanceDueLeases returns how many
// steps it has begun and how many steps it has finished.
func (a *Activities) advanceDueLeases(ctx context.Context) (begun, finished int, err error) {
	if expired := a.expireLeases(ctx); expired > 0 {
		return expired, expired, nil
	}
	started, ready, err := a.Store.Lease.BeginDueLeases(ctx, a.Cloud != nil)
	if err != nil || len(started) == 0 {
		return 0, 0, err
	}
	finished, err = a.finishLeases(ctx, started, ready)
	return len(started), finished, err
}

// expireLeases expires leases that could not start before their end, and returns their number. If this fails
// or takes longer than Timeouts.Expire, expireLeases logs it, and the round begins the steps of other leases.
func (a *Activities) expireLeases(ctx context.Context) int {
	limited, cancel := context.WithTimeout(ctx, a.Timeouts.Expire)
	defer cancel()
	expired, err := a.Store.Lease.ExpireBlockedLeases(limited)
	if err != nil {
		slog.WarnContext(
			ctx,
			"cannot expire the leases that could not start before their end; the next round tries again",
			"error", err,
		)
		return 0
	}
	return expired
}

// TakeOverLeases performs the steps that another process has begun and not finished in time, because it was
// probably killed. TakeOverLeases returns the number of steps that it has finished.
func (a *Activities) TakeOverLeases(ctx context.Context) (finished int, err error) {
	started, ready, err := a.Store.Lease.TakeOverLeases(ctx, a.Cloud != nil)
	if err != nil || len(started) == 0 {
		return 0, err
	}
	return a.finishLeases(ctx, started, ready)
}

// finishLeases makes the Nova and Neutron calls of steps that have begun, and finishes the steps.
func (a *Activities) finishLeases(
	ctx context.Context,
	started, ready []leasestore.StartedStep,
) (finished int, err error) {
	applied := ready
	if a.Cloud != nil {
		applied = reservationBackend{a, a.recordCall, a.keepLeftover}.Apply(ctx, ready)
	}
	finished, abandoned, err := a.Store.Lease.FinishStartedLeases(ctx, started, applied)
	if a.Cloud != nil {
		// A step whose Nova and Neutron calls have partly failed may still have created something in Nova or
		// Neutron.
		undo := slices.DeleteFunc(ready, func(s leasestore.StartedStep) bool { return !abandoned[s.ID] })
		reservationBackend{a, a.recordCall, a.keepLeftover}.Undo(ctx, undo)
	}
	return finished, err
}
