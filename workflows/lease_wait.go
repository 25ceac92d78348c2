package workflows

import (
	"math"
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/internal/lease"
)

// leadTime is how long before the start or end of a lease the lease's workflow wakes up, so that the worker
// of the workflow is ready at the exact time. If a signal arrives during this time, the workflow handles the
// signal only after the start or end.
const leadTime = time.Second

// If many leases are due at one instant, the workflows of the first lease.LeaderCount leases (the leaders)
// wake up before this instant and perform the step for all leases of the instant. The workflows of the other
// leases (the followers) wake up later, one after another, and only read the result. If the timers of all
// leases fired at the same time, the many workflow tasks would delay the steps. A lease's rank is the
// position of the lease among the leases that are due at the same instant. berth counts the rank of a lease
// when the lease is created, so leases that are created at the same time can get the same rank, and a few
// more leases than lease.LeaderCount can become leaders.
const (
	// followerDelay is the time from the common instant until the first follower wakes up.
	followerDelay = 5 * time.Second
	// staggerStep is the time between the wake-ups of two followers.
	staggerStep = 12 * time.Millisecond
)

// staggerDelay returns how long after the common instant the workflow of the lease with the given rank wakes
// up. While many leases are created at the same time, a lease counts only the few leases that already exist,
// so low ranks are frequent. The square root in the delay spreads the wake-ups of leases with low ranks. With
// the square root, the wake-ups of a thousand leases are about evenly spaced even if many of the leases have
// low ranks.
func staggerDelay(rank int) time.Duration {
	return followerDelay + time.Duration((float64(rank)+32*math.Sqrt(float64(rank)))*float64(staggerStep))
}

// waitForStep returns at the given time, or earlier when the row has changed. For a start or an end, a leader
// runs the activity AdvanceLeases from one second before the given time on, so that the activity performs the
// step without a delay.
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
	if advanced, err := r.advanceLeases(ctx, event, at); err != nil || advanced > 0 {
		return err
	}
	return waitUntil(ctx, at, summary, r.changed)
}

// longestTimer limits the timers of leases: a lease can end in the year 9999, but Temporal computes with
// nanoseconds since 1970 in 64 bits, which end in the year 2262. A replay does not compare the durations of
// timers, so workflows that began with a longer timer continue with it.
const longestTimer = 365 * 24 * time.Hour

// waitUntil returns at the given time, or after longestTimer if that is earlier. waitUntil also returns
// earlier when a signal says that the row has changed, or when the workflow run should continue as new. The
// workflow then reads the row again, and waits again if nothing is due.
func waitUntil(ctx workflow.Context, at time.Time, summary string, changed workflow.ReceiveChannel) error {
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      min(at.Sub(workflow.Now(ctx)), longestTimer),
		TimerOptions: workflow.TimerOptions{Summary: summary},
	}, func() bool { return changed.Len() > 0 || shouldContinueAsNew(ctx, 0) })
	return err
}

// nextEvent returns the type of the lease's event that is due at the given time, or "recheck" if no event of
// the lease is due at this time.
func nextEvent(l lease.Lease, at time.Time) string {
	for _, e := range l.Events {
		if e.Status == lease.EventUndone && e.At.Equal(at) {
			return string(e.Type)
		}
	}
	return "recheck"
}
