package lease

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Recheck is how long a lease waits for a blocked host before it checks again. The lease that releases the host nudges
// it earlier.
const Recheck = 10 * time.Second

// Skew is the assumed maximum difference between the clocks of two processes.
const Skew = 5 * time.Second

// Vanguard is the number of leases among those due at the same instant whose workflows wake up in time and take the
// step for all of them.
const Vanguard = 4

// Next returns the next step of a lease. Deletion has priority. A step that has begun is repeated, because its worker
// may have died. Overdue steps are taken in the order start, before_end, end.
func Next(l Lease, now time.Time) Due {
	switch {
	case l.DeleteRequested || l.Status == Deleting:
		return Due{Step: Delete}
	case l.Status == Starting:
		return Due{Step: Start}
	case l.Status == Terminating:
		return Due{Step: End}
	}
	start, end, before := l.event(StartLease), l.event(EndLease), l.event(BeforeEndLease)
	switch {
	case start == nil || end == nil:
		return Due{Step: Stop}
	case l.Status == Pending && now.Before(start.At):
		return Due{Step: Wait, At: start.At}
	case l.Status == Pending && len(l.Blockers) > 0:
		return Due{Step: Wait, At: now.Add(Recheck)}
	case l.Status == Pending:
		return Due{Step: Start}
	case l.Status == Active:
		due := nextWhileActive(before, end, now)
		if due.Step == Wait && slices.ContainsFunc(l.Reservations, Reservation.Outdated) {
			return Due{Step: Refit}
		}
		return due
	case l.Status == Error && end.Status == Undone:
		return stepAt(End, end.At, now)
	default:
		return Due{Step: Stop}
	}
}

// Upcoming returns the due time of the lease's next event, but not later than by.
func Upcoming(l Lease, by time.Time) time.Time {
	for _, e := range l.Events {
		if e.Status == Undone && e.At.Before(by) {
			by = e.At
		}
	}
	return by
}

// Outdated reports whether Nova and Neutron do not have the current resources of the reservation.
func (r Reservation) Outdated() bool { return r.Shaped < r.Shape }

// nextWhileActive chooses between the before_end_lease and the end_lease event of an active lease.
func nextWhileActive(before, end *Event, now time.Time) Due {
	if before == nil || before.Status == Done || before.Status == Failed {
		return stepAt(End, end.At, now)
	}
	if before.Status == InProgress {
		return Due{Step: BeforeEnd}
	}
	return stepAt(BeforeEnd, before.At, now)
}

func stepAt(step Step, when, now time.Time) Due {
	if now.Before(when) {
		return Due{Step: Wait, At: when}
	}
	return Due{Step: step}
}

// Begin moves the lease to the transitional status of a step. It changes nothing if the lease already is there. It
// returns ErrTransition if the step is not due, for example because the dates moved or the lease is being deleted.
func Begin(l Lease, step Step, now time.Time) (Lease, error) {
	l = l.clone()
	if l.DeleteRequested != (step == Delete) {
		return l, transitionError(l, step)
	}
	switch step {
	case Start:
		return enter(l, step, Starting, StartLease, now)
	case End:
		return enter(l, step, Terminating, EndLease, now)
	case BeforeEnd:
		e := l.event(BeforeEndLease)
		switch {
		case l.Status != Active || e == nil:
			return l, transitionError(l, step)
		case e.Status == InProgress:
			return l, nil
		case e.Status != Undone || !isDue(e, now):
			return l, transitionError(l, step)
		}
		e.Status = InProgress
		return l, nil
	case Delete:
		for i := range l.Events {
			if l.Events[i].Status == InProgress {
				l.Events[i].Status = Failed
			}
		}
		l.Status = Deleting
		return l, nil
	default:
		return l, transitionError(l, step)
	}
}

// enter moves lease and event to their transitional statuses, if they are not there yet.
func enter(l Lease, step Step, status Status, event EventType, now time.Time) (Lease, error) {
	if l.Status == status {
		return l, nil
	}
	e := l.event(event)
	if e == nil || e.Status != Undone || !l.Status.CanBecome(status) || !isDue(e, now) {
		return l, transitionError(l, step)
	}
	e.Status = InProgress
	l.Status = status
	return l, Check(l)
}

func isDue(e *Event, now time.Time) bool { return !e.At.After(now.Add(Skew)) }

// Finish returns the lease in the stable status after a step. failed maps the reservations that failed to their errors.
// A repeated call changes nothing. It returns ErrTransition if the step has not begun.
//
// All reservations of a lease share one result: if one fails to start or end, all reservations and the lease are in
// ERROR. If the start failed, the lease is in ERROR after its end, too, and its hosts are free.
func Finish(l Lease, step Step, failed map[uuid.UUID]string) (Lease, error) {
	l = l.clone()
	fail := false
	for _, r := range l.Reservations {
		_, is := failed[r.ID]
		fail = fail || is
	}
	switch step {
	case Start:
		return leave(l, step, Starting, StartLease, ReservationActive, fail, failed)
	case End:
		start := l.event(StartLease)
		fail = fail || start == nil || start.Status != Done
		return leave(l, step, Terminating, EndLease, ReservationDeleted, fail, failed)
	case BeforeEnd:
		e := l.event(BeforeEndLease)
		switch {
		case l.Status != Active || e == nil || e.Status == Undone:
			return l, transitionError(l, step)
		case e.Status == InProgress:
			e.Status = eventResult(fail)
		}
		return l, nil
	case Delete:
		if l.Status != Deleting {
			return l, transitionError(l, step)
		}
		if fail {
			return l, fmt.Errorf("%w: lease %s still holds resources: %v", ErrTransition, l.ID, failed)
		}
		return l, nil
	default:
		return l, transitionError(l, step)
	}
}

// leave moves reservations, event and lease to their stable statuses after a step.
func leave(l Lease, step Step, from Status, event EventType, onSuccess ReservationStatus, fail bool, failed map[uuid.UUID]string) (Lease, error) {
	e := l.event(event)
	if e == nil {
		return l, transitionError(l, step)
	}
	if l.Status != from {
		if e.Status == eventResult(fail) && l.Status == Derive(l) && isResultOf(l, step) {
			return l, nil
		}
		return l, transitionError(l, step)
	}
	e.Status = eventResult(fail)
	for i := range l.Reservations {
		r := &l.Reservations[i]
		if reason := failed[r.ID]; reason != "" {
			r.LastError = reason
		}
		if fail {
			r.Status = ReservationError
		} else {
			r.Status = onSuccess
		}
	}
	l.Status = Derive(l)
	return l, Check(l)
}

// isResultOf reports whether the status of the lease is a result of the step.
func isResultOf(l Lease, step Step) bool {
	if step == Start {
		return l.Status == Active || l.Status == Error && l.event(EndLease).Status == Undone
	}
	return l.Status == Terminated || l.Status == Error
}

func eventResult(failed bool) EventStatus {
	if failed {
		return Failed
	}
	return Done
}

func transitionError(l Lease, step Step) error {
	if l.DeleteRequested && step != Delete {
		return fmt.Errorf("%w: lease %s is %s and shall be deleted: no %s", ErrTransition, l.ID, l.Status, step)
	}
	return fmt.Errorf("%w: lease %s is %s, no %s is due", ErrTransition, l.ID, l.Status, step)
}

// Released reports whether the hosts of a reservation are free after a step: after its end or deletion, unless that
// failed. A host is not reused before its reservation is known to have released it.
func Released(step Step, r uuid.UUID, failed map[uuid.UUID]string) bool {
	_, hasFailed := failed[r]
	return slices.Contains([]Step{End, Delete}, step) && !hasFailed
}
