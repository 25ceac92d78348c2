package workflows

import (
	"math"
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/internal/lease"
)

// leadTime is how long before its start or end a lease's workflow wakes up, so that its worker is ready at the exact
// time. Signals that arrive during this time are handled afterwards.
const leadTime = time.Second

// The first lease.LeaderCount leases that are due at one instant (the leaders) wake up early and perform the step for
// all leases of that instant. The other leases (the followers) wake up later, one after another, and only read the
// result. If all timers fired together, they would delay the steps. A lease's rank is its position among the leases
// of one instant. Ranks are counted while leases are created, so a few more leases than lease.LeaderCount may become
// leaders.
const (
	// followerDelay is the time from the common instant until the first follower wakes up.
	followerDelay = 5 * time.Second
	// staggerStep is the time between the wake-ups of two followers.
	staggerStep = 12 * time.Millisecond
)

// staggerDelay returns how long after the common instant the lease with the given rank wakes up. While many leases
// are created, an early lease counts only the few that already exist, so low ranks are frequent. The square root
// spreads the low ranks. A thousand leases are then evenly spaced, whether their ranks were counted early or late.
func staggerDelay(rank int) time.Duration {
	return followerDelay + time.Duration((float64(rank)+32*math.Sqrt(float64(rank)))*float64(staggerStep))
}

// waitForStep returns at the given time, or earlier when the row has changed. Before a start or an end, it spends the
// last second in an activity, which then performs the step without a delay.
func (r *leaseRun) waitForStep(ctx workflow.Context, l lease.Lease, at time.Time) error {
	event := nextEvent(l, at)
	summary := event + " at " + at.UTC().Format(time.RFC3339)
	if event != string(lease.StartLease) && event != string(lease.EndLease) {
		return waitUntil(ctx, at, summary, r.changed)
	}
	wake := at.Add(-leadTime)
	if l.Rank >= lease.LeaderCount {
		wake = at.Add(staggerDelay(l.Rank))
	}
	if wake.After(workflow.Now(ctx)) {
		return waitUntil(ctx, wake, summary, r.changed)
	}
	if advanced, err := advanceLeases(ctx, event, at); err != nil || advanced > 0 {
		return err
	}
	return waitUntil(ctx, at, summary, r.changed)
}

// waitUntil returns at the given time. It returns earlier when the row has changed, or when the run should continue
// as new.
func waitUntil(ctx workflow.Context, at time.Time, summary string, changed workflow.ReceiveChannel) error {
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      at.Sub(workflow.Now(ctx)),
		TimerOptions: workflow.TimerOptions{Summary: summary},
	}, func() bool { return changed.Len() > 0 || shouldContinueAsNew(ctx, 0) })
	return err
}

// nextEvent returns the type of the lease's event that is due at the given time, or "recheck" if there is no such
// event.
func nextEvent(l lease.Lease, at time.Time) string {
	for _, e := range l.Events {
		if e.Status == lease.EventUndone && e.At.Equal(at) {
			return string(e.Type)
		}
	}
	return "recheck"
}
