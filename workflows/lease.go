package workflows

import (
	"errors"
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/lease"
)

// Lease starts and ends a lease on its second and lets a deletion win over everything. It is over when nothing
// will ever be due; a later change of the row starts it again.
func Lease(ctx workflow.Context, in contract.Input) error {
	f, err := newFace(ctx, contract.LeaseID(in.Key))
	if err != nil {
		return err
	}
	changed := nudged(ctx)
	for handled := 0; ; handled++ {
		handled += drain(changed)
		if full(ctx, handled) {
			return workflow.NewContinueAsNewError(ctx, contract.Lease, in)
		}
		var l lease.Lease
		if err := workflow.ExecuteLocalActivity(quick(ctx, "look"), do.Lease, in.Key).Get(ctx, &l); err != nil {
			return gone(err)
		}
		due := lease.Next(l, workflow.Now(ctx))
		if err := f.show(ctx, whyLease(l, workflow.Now(ctx))); err != nil {
			return err
		}
		switch due.Step {
		case lease.Stop:
			if changed.Len() == 0 {
				return nil
			}
		case lease.Wait:
			err = await(ctx, l, due.At, changed)
		default:
			err = f.take(ctx, l, due.Step, changed)
		}
		if err != nil {
			return err
		}
	}
}

// early is how long before its start or end a lease wakes, to be there on the instant. Signals of the last moment wait
// for so long.
const early = time.Second

// Of many leases that are due at one instant some wake early and take the step for all. The others come later, one
// after another, to see what they have become: so many timers at once would keep the machine from the leases. Who has
// fewer before him than lease.Vanguard is one of the first; that is more than so many, because they are counted as they
// come.
const (
	later = 5 * time.Second
	gap   = 12 * time.Millisecond
)

// behind is how long after the others' instant a lease wakes that has so many before it. Whoever is made early counts few of
// them, so that most leases of a burst count few: the root keeps these apart, and a thousand of either kind come in even
// steps.
func behind(ahead int) time.Duration {
	return later + time.Duration((float64(ahead)+32*math.Sqrt(float64(ahead)))*float64(gap))
}

// await returns when it is time, or when the row has changed. A start or an end it awaits awake.
func await(ctx workflow.Context, l lease.Lease, at time.Time, changed workflow.ReceiveChannel) error {
	what := next(l, at)
	summary := what + " at " + at.UTC().Format(time.RFC3339)
	if what != string(lease.StartLease) && what != string(lease.EndLease) {
		return waitUntil(ctx, at, summary, changed)
	}
	wake := at.Add(-early)
	if l.Ahead >= lease.Vanguard {
		wake = at.Add(behind(l.Ahead))
	}
	if wake.After(workflow.Now(ctx)) {
		return waitUntil(ctx, wake, summary, changed)
	}
	if advanced, err := advance(ctx, what, at); err != nil || advanced > 0 {
		return err
	}
	return waitUntil(ctx, at, summary, changed)
}

// take does what is due. What cannot be done for all at once, the lease does by itself.
func (f *face) take(ctx workflow.Context, l lease.Lease, step lease.Step, changed workflow.ReceiveChannel) error {
	if l.Status.Stable() && (step == lease.Start || step == lease.End) {
		if advanced, err := advance(ctx, string(step), workflow.Now(ctx)); err != nil || advanced > 0 {
			return err
		}
	}
	return f.act(ctx, l, step, changed)
}

// advance takes all that is due at that instant: timers of one instant fire one after another, so whoever wakes first
// does it for all.
func advance(ctx workflow.Context, what string, at time.Time) (advanced int, err error) {
	err = workflow.ExecuteLocalActivity(quick(ctx, what+" with all that is due"), do.AdvanceLeases, at).Get(ctx, &advanced)
	return advanced, err
}

// pause is how long a step that the row refused waits before the next look, unless the row changes.
const pause = time.Second

// waitUntil returns when it is time, when the row has changed, or when the run should hand over.
func waitUntil(ctx workflow.Context, at time.Time, summary string, changed workflow.ReceiveChannel) error {
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      at.Sub(workflow.Now(ctx)),
		TimerOptions: workflow.TimerOptions{Summary: summary},
	}, func() bool { return changed.Len() > 0 || full(ctx, 0) })
	return err
}

// next names what is due at that time, as the lease's own events are named.
func next(l lease.Lease, at time.Time) string {
	for _, e := range l.Events {
		if e.Status == lease.Undone && e.At.Equal(at) {
			return string(e.Type)
		}
	}
	return "look again"
}

// act takes one step: first the transitional status, then each reservation, then the stable status. If somebody
// was faster, the step ends early and the next look tells what is due instead.
func (f *face) act(ctx workflow.Context, l lease.Lease, step lease.Step, changed workflow.ReceiveChannel) error {
	if step == lease.Refit {
		return f.refit(ctx, l, changed)
	}
	name := named(l)
	err := workflow.ExecuteLocalActivity(quick(ctx, fmt.Sprintf("begin %s of %s", step, name)), do.BeginLease, l.ID, step).Get(ctx, &l)
	if err != nil {
		return yield(ctx, err, changed)
	}
	failed, err := f.each(ctx, l, taskOf(l, step, workflow.Now(ctx)), changed)
	if err != nil {
		return yield(ctx, err, changed)
	}
	err = workflow.ExecuteLocalActivity(quick(ctx, fmt.Sprintf("finish %s of %s", step, name)), do.FinishLease, l.ID, step, failed).Get(ctx, nil)
	// Recorded as lease-failed: a start that failed left what it had done to the lease's end.
	if err == nil && step == lease.Start && len(failed) > 0 && workflow.GetVersion(ctx, "clear a failed start", workflow.DefaultVersion, 1) == 1 {
		_, err = f.each(ctx, l, taskOf(l, lease.End, workflow.Now(ctx)), changed)
	}
	return yield(ctx, err, changed)
}

// refit tells the cloud what an active lease has become. If it does not want to know, that is tried again later.
func (f *face) refit(ctx workflow.Context, l lease.Lease, changed workflow.ReceiveChannel) error {
	failed, err := f.each(ctx, l, taskOf(l, lease.Refit, workflow.Now(ctx)), changed)
	if err == nil && len(failed) > 0 {
		err = waitUntil(ctx, lease.Upcoming(l, workflow.Now(ctx).Add(lease.Recheck)), "tell the cloud again", changed)
	}
	return yield(ctx, err, changed)
}

// yield forgives that the row is no longer where the step found it: after a pause the next look tells more.
func yield(ctx workflow.Context, err error, changed workflow.ReceiveChannel) error {
	if errors.Is(err, errGivenUp) {
		return nil
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == activities.Conflict {
		return waitUntil(ctx, workflow.Now(ctx).Add(pause), "look again", changed)
	}
	return gone(err)
}

// gone forgives that the row is deleted: then nothing is left to do.
func gone(err error) error {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == activities.NotFound {
		return nil
	}
	return err
}

func whyLease(l lease.Lease, now time.Time) contract.Why {
	sentence, waits := lease.Explain(l, now)
	w := contract.Why{State: string(l.Status), Sentence: "Lease " + named(l) + " is " + sentence}
	for _, wait := range waits {
		w.Waiting = append(w.Waiting, contract.Waiting{For: wait.For, Since: &wait.Since, Deadline: wait.Deadline})
	}
	return w
}

// named is a lease's name for people, its ID if it has none.
func named(l lease.Lease) string {
	if l.Name == "" {
		return l.ID.String()
	}
	return l.Name
}
