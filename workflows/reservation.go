package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/lease"
)

// task is what a step means to one reservation.
type task struct {
	name   string
	do     any // an activity that takes a reservation's ID
	skip   func(lease.Reservation) bool
	within time.Duration // for as long a neighbour is asked again
	until  time.Time     // so that this comes in time; zero if nothing else can be due before the step is done
}

// taskOf is the task of a step. What is only convenient does not hold up what is due next.
func taskOf(l lease.Lease, step lease.Step, now time.Time) task {
	t := task{name: "wire", do: do.WireReservation, within: cmp.Or(l.Patience, Insistence), skip: func(r lease.Reservation) bool { return r.Status == lease.ReservationDeleted }}
	switch step {
	case lease.End, lease.Delete:
		t.name, t.do = "unwire", do.UnwireReservation
	case lease.BeforeEnd:
		t.name, t.do, t.within = "prepare the end of", do.PrepareEnd, lease.Upcoming(l, now.Add(t.within)).Sub(now)
		t.skip = func(r lease.Reservation) bool { return r.BeforeEnd != "snapshot" }
	case lease.Refit:
		t.within = lease.Upcoming(l, now.Add(min(t.within, time.Minute))).Sub(now)
		t.skip = func(r lease.Reservation) bool { return !r.Outdated() }
	}
	if step == lease.BeforeEnd || step == lease.Refit {
		t.until = now.Add(t.within)
	}
	t.within = max(t.within, time.Second)
	return t
}

// errGivenUp means that the lease was deleted, or its dates moved, in the middle of a step: the next look tells what is due.
var errGivenUp = errors.New("the step is overtaken")

// overtaken tells whether a step has to be left: a deletion wins over everything, and what is only convenient does not
// hold up an end that was moved to an earlier time.
func (t task) overtaken(ctx workflow.Context, was, is lease.Lease) bool {
	if is.DeleteRequested {
		return was.Status != lease.Deleting
	}
	return !t.until.IsZero() && lease.Upcoming(is, t.until).Before(t.until) &&
		workflow.GetVersion(ctx, "begin again when dates move", workflow.DefaultVersion, 1) == 1
}

// each does a task for all reservations of a lease: at once, and where a neighbour is unwilling again and again, for
// all of these together. It tells which failed for good, and why. What overtakes the step ends it with errGivenUp.
func (f *face) each(ctx workflow.Context, l lease.Lease, t task, changed workflow.ReceiveChannel) (map[string]string, error) {
	failed, unwilling, said := map[string]string{}, []lease.Reservation{}, ""
	for _, r := range l.Reservations {
		if t.skip(r) {
			continue
		}
		err := workflow.ExecuteLocalActivity(brisk(ctx, fmt.Sprintf("%s reservation %s", t.name, r.ID)), t.do, r.ID).Get(ctx, nil)
		switch {
		case err == nil:
		case is(err, activities.Unwilling) || !decided(err) && workflow.GetVersion(ctx, "ask again after any error", workflow.DefaultVersion, 1) == 1:
			unwilling, said = append(unwilling, r), reason(err)
		default: // no history has a version here: what failed otherwise was not asked again
			failed[r.ID.String()] = err.Error()
		}
	}
	if len(unwilling) == 0 {
		return failed, nil
	}
	if err := f.show(ctx, whyUnwilling(l, t, said, workflow.Now(ctx))); err != nil {
		return failed, err
	}
	return failed, askAgain(ctx, l, t, unwilling, failed, changed)
}

// askAgain asks again, for all reservations at the same time, until they are done, have failed, or are overtaken.
func askAgain(ctx workflow.Context, l lease.Lease, t task, unwilling []lease.Reservation, failed map[string]string, changed workflow.ReceiveChannel) error {
	attempts, cancel := workflow.WithCancel(ctx)
	defer cancel()
	open := len(unwilling)
	for _, r := range unwilling {
		f := workflow.ExecuteActivity(insistent(attempts, fmt.Sprintf("%s reservation %s", t.name, r.ID), t.within), t.do, r.ID)
		workflow.Go(ctx, func(ctx workflow.Context) {
			if err := f.Get(ctx, nil); err != nil {
				failed[r.ID.String()] = reason(err)
			}
			open--
		})
	}
	for looks := 0; open > 0; looks++ {
		// Each attempt looks at the row too: a flood of nudges is left to them.
		if err := workflow.Await(ctx, func() bool { return open == 0 || changed.Len() > 0 && looks < messagesPerRun }); err != nil {
			return err
		}
		if open == 0 {
			return nil
		}
		drain(changed)
		var now lease.Lease
		if err := workflow.ExecuteLocalActivity(quick(ctx, "look"), do.Lease, l.ID.String()).Get(ctx, &now); err != nil {
			return err
		}
		if t.overtaken(ctx, l, now) {
			cancel()
			if err := workflow.Await(ctx, func() bool { return open == 0 }); err != nil {
				return err
			}
			return errGivenUp
		}
	}
	return nil
}

// whyUnwilling says for whom a step waits.
func whyUnwilling(l lease.Lease, t task, said string, now time.Time) contract.Why {
	until := now.Add(t.within)
	return contract.Why{State: string(l.Status), LastError: said, Waiting: []contract.Waiting{{For: "cloud", Since: &now, Deadline: &until}},
		Sentence: fmt.Sprintf("Lease %s is %s: it waits for the cloud to %s its reservations, until %s at most. It said: %s.",
			named(l), l.Status, t.name, until.UTC().Format(time.RFC3339), said)}
}

// decided tells whether an activity failed with an error that no retry mends.
func decided(err error) bool {
	return is(err, activities.Conflict) || is(err, activities.NotFound) || is(err, activities.Invalid)
}

// is tells whether an activity failed with an error of that type.
func is(err error, typ string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == typ
}

// reason is what went wrong in an activity's last attempt, without Temporal's words around it.
func reason(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}
