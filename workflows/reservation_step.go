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

// reservationTask is the work that a step of a lease does for each of the lease's reservations.
type reservationTask struct {
	step lease.Step
	// what the task does to a reservation, for example "provision"; part of texts in Temporal's UI and of
	// `why`
	name      string
	activity  string // registered name of an activity whose argument is a reservation's ID
	skip      func(lease.Reservation) bool
	retryTime time.Duration // how long failed calls are retried
	// optionalUntil is set if the step is optional: it is the end of the retries, which is not later than the
	// lease's next event. An optional step must stop if a change of the lease's dates makes an event due
	// before optionalUntil.
	optionalUntil time.Time
	retryUntil    time.Time // end of the retries, if the previous run began them; otherwise zero
}

// reservationTaskFor returns the task that a step of a lease performs for each reservation. The task of an
// optional step (the action before the end, or an update of Nova and Neutron) retries only until the lease's
// next event is due.
func reservationTaskFor(l lease.Lease, step lease.Step, now time.Time) reservationTask {
	t := reservationTask{
		step:      step,
		name:      "provision",
		activity:  activities.ProvisionReservation,
		retryTime: cmp.Or(l.CloudRetryTime, DefaultCloudRetryTime),
		skip:      func(r lease.Reservation) bool { return r.Status == lease.ReservationDeleted },
	}
	switch step {
	case lease.StepEnd, lease.StepDelete:
		t.name, t.activity = "release", activities.ReleaseReservation
	case lease.StepClear:
		t.name, t.activity = "release", activities.ReleaseReservation
		t.retryTime = lease.NextEventTime(l, now.Add(clearRound)).Sub(now)
		t.skip = func(r lease.Reservation) bool { return !l.NeedsClearing(r) }
	case lease.StepBeforeEnd:
		t.name, t.activity = "run the action before the end of", activities.RunBeforeEndAction
		t.retryTime = lease.NextEventTime(l, now.Add(t.retryTime)).Sub(now)
		t.skip = func(r lease.Reservation) bool { return r.BeforeEnd != "snapshot" }
	case lease.StepResync:
		t.name = "update"
		t.retryTime = lease.NextEventTime(l, now.Add(min(t.retryTime, time.Minute))).Sub(now)
		t.skip = func(r lease.Reservation) bool { return !r.CloudOutdated() }
	}
	if step == lease.StepBeforeEnd || step == lease.StepResync {
		t.optionalUntil = now.Add(t.retryTime)
	}
	t.retryTime = max(t.retryTime, time.Second)
	return t
}

// resumedTask returns the same task as reservationTaskFor. If the previous run interrupted this step in order
// to continue as new, the retries end when they would have ended in the previous run.
func (r *leaseRun) resumedTask(l lease.Lease, step lease.Step, now time.Time) reservationTask {
	t := reservationTaskFor(l, step, now)
	if until := r.in.RetryUntil; until != nil && r.in.Step == string(step) {
		t.retryUntil = *until
	}
	r.in.Step, r.in.RetryUntil = "", nil
	return t
}

// clearRound is how long one round of retries to remove the resources of a lease in ERROR lasts.
const clearRound = time.Hour

// errSuperseded means that the lease was deleted, or its dates changed, during a step. After errSuperseded,
// the workflow reads the lease's row again to find the step that is due.
var errSuperseded = errors.New("the step is superseded")

// superseded reports whether the running step must stop. Every step must stop if the deletion of the lease
// was requested; an optional step must also stop if the next event of the lease was moved to an earlier time.
func (t reservationTask) superseded(before, now lease.Lease) bool {
	if now.DeleteRequested {
		return before.Status != lease.Deleting
	}
	return !t.optionalUntil.IsZero() && lease.NextEventTime(now, t.optionalUntil).Before(t.optionalUntil)
}

// runForEach performs a task for all reservations of a lease. runForEach first makes one attempt for each
// reservation, one reservation after another, in local activities. For the reservations whose local activity
// failed, runForEach retries the task concurrently with regular activities. runForEach returns the final
// error texts by reservation ID, or errSuperseded if the step must stop.
func (r *leaseRun) runForEach(
	ctx workflow.Context,
	l lease.Lease,
	t reservationTask,
) (map[string]string, error) {
	failed, retry := map[string]string{}, []lease.Reservation{}
	var lastError error
	for _, reservation := range l.Reservations {
		if t.skip(reservation) {
			continue
		}
		try := localFirstTry(ctx, fmt.Sprintf("%s reservation %s", t.name, reservation.ID))
		err := workflow.ExecuteLocalActivity(try, t.activity, reservation.ID).Get(ctx, nil)
		switch {
		case err == nil:
		case hasType(err, activities.BackendError) || !isFinal(err):
			retry, lastError = append(retry, reservation), err
		default:
			failed[reservation.ID.String()] = err.Error()
		}
	}
	if len(retry) == 0 {
		return failed, nil
	}
	if !t.retryUntil.IsZero() {
		t.retryTime = max(t.retryUntil.Sub(workflow.Now(ctx)), time.Second)
	}
	if err := r.reporter.report(ctx, whyRetrying(l, t, lastError, workflow.Now(ctx)), nil); err != nil {
		return failed, err
	}
	return failed, r.retryRemotely(ctx, l, t, retry, failed)
}

// retryRemotely retries a task for several reservations at the same time. retryRemotely returns when the
// task has succeeded or permanently failed for each of the reservations, or when the step is superseded,
// or when the workflow must continue as new. retryRemotely adds the final errors to the map `failed`.
func (r *leaseRun) retryRemotely(
	ctx workflow.Context,
	l lease.Lease,
	t reservationTask,
	retry []lease.Reservation,
	failed map[string]string,
) error {
	activityCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	until := workflow.Now(ctx).Add(t.retryTime)
	running := len(retry)
	for _, reservation := range retry {
		f := workflow.ExecuteActivity(
			remoteLimited(activityCtx, fmt.Sprintf("%s reservation %s", t.name, reservation.ID), t.retryTime),
			t.activity,
			reservation.ID,
		)
		workflow.Go(ctx, func(ctx workflow.Context) {
			if err := f.Get(ctx, nil); err != nil {
				failed[reservation.ID.String()] = errorMessage(err)
			}
			running--
		})
	}
	ended := func() bool { return running == 0 }
	reason := r.awaitRetries(ctx, l, t, ended)
	interrupted := errors.Is(reason, errInterrupted)
	if !interrupted && !errors.Is(reason, errSuperseded) {
		return reason
	}
	cancel()
	if err := workflow.Await(ctx, ended); err != nil || !interrupted {
		return cmp.Or(err, reason)
	}
	r.in.Step, r.in.RetryUntil = string(t.step), &until
	return r.continueAsNew(ctx)
}

// awaitRetries waits until `ended` says that the retries of the step's activity are over. It returns
// errSuperseded if the step must stop, and errInterrupted if the workflow must continue as new.
func (r *leaseRun) awaitRetries(
	ctx workflow.Context,
	l lease.Lease,
	t reservationTask,
	ended func() bool,
) error {
	for reads := 0; !ended(); {
		// After messagesPerRun reads of the lease, signals cause no further reads, so that the history stays
		// short. If the lease is deleted afterwards, the step still stops, because each attempt of the
		// activity reads the lease's row itself.
		err := workflow.Await(ctx, func() bool {
			return ended() || r.changed.Len() > 0 && reads < messagesPerRun || r.isFull(ctx)
		})
		switch {
		case err != nil:
			return err
		case ended():
			return nil
		case r.isFull(ctx):
			return errInterrupted
		}
		reads++
		r.handledInSteps += discardAll(r.changed)
		var now lease.Lease
		err = runDatabaseWork(ctx, r.reporter, func() bool { return r.isFull(ctx) },
			"read the lease", &now, activities.ReadLease, l.ID.String())
		if err == nil && t.superseded(l, now) {
			err = errSuperseded
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whyRetrying returns the description of a step that retries calls to external services, for the query "why".
func whyRetrying(l lease.Lease, t reservationTask, lastError error, now time.Time) contract.Why {
	until, party, message := now.Add(t.retryTime), partyOf(lastError), errorMessage(lastError)
	return contract.Why{
		State:     string(l.Status),
		LastError: message,
		Waiting:   []contract.Waiting{{For: party, Since: &now, Deadline: &until}},
		Sentence: fmt.Sprintf(
			"Lease %s is %s: berth could not %s a reservation, because a call to %s failed; retries end at %s. Last error: %s.",
			displayName(l), l.Status, t.name, lease.PartyName(party), until.UTC().Format(time.RFC3339),
			message,
		),
	}
}

// partyOf returns the party whose call failed: nova, neutron, keystone or placement. Errors that an older
// release of berth has recorded do not name the party; for these errors, partyOf returns "cloud".
func partyOf(err error) string {
	var app *temporal.ApplicationError
	party := "cloud"
	if errors.As(err, &app) && app.HasDetails() {
		_ = app.Details(&party)
	}
	return party
}

// isFinal reports whether an activity failed with an error that no retry can fix.
func isFinal(err error) bool {
	return hasType(err, activities.Conflict) || hasType(err, activities.NotFound) ||
		hasType(err, activities.Invalid)
}

// hasType reports whether an activity failed with an application error of the given type.
func hasType(err error, typ string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == typ
}

// errorMessage returns the message of an activity's last attempt without Temporal's prefix.
func errorMessage(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}
