package lease

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// RecheckInterval is how long a lease waits for a blocked host before it checks again. The lease that releases the host nudges
// it earlier.
const RecheckInterval = 10 * time.Second

// ClockSkew is the assumed maximum difference between the clocks of two processes.
const ClockSkew = 5 * time.Second

// LeaderCount is the number of leases among those due at the same instant whose workflows wake up in time and take the
// step for all of them.
const LeaderCount = 4

// Next returns the next step of a lease. Deletion has priority. A step that has begun is repeated, because its worker
// may have died. Overdue steps are taken in the order start, before_end, end.
func Next(l Lease, now time.Time) Due {
	switch {
	case l.DeleteRequested || l.Status == Deleting:
		return Due{Step: StepDelete}
	case l.Status == Starting:
		return Due{Step: StepStart}
	case l.Status == Terminating:
		return Due{Step: StepEnd}
	}
	start, end, before := l.event(StartLease), l.event(EndLease), l.event(BeforeEndLease)
	switch {
	case start == nil || end == nil:
		return Due{Step: StepStop}
	case l.Status == Pending && now.Before(start.At):
		return Due{Step: StepWait, At: start.At}
	case l.Status == Pending && len(l.Blockers) > 0:
		return Due{Step: StepWait, At: now.Add(RecheckInterval)}
	case l.Status == Pending:
		return Due{Step: StepStart}
	case l.Status == Active:
		due := nextWhileActive(before, end, now)
		if due.Step == StepWait && slices.ContainsFunc(l.Reservations, Reservation.CloudOutdated) {
			return Due{Step: StepResync}
		}
		return due
	case l.Status == Error && end.Status == EventUndone:
		return stepAt(StepEnd, end.At, now)
	default:
		return Due{Step: StepStop}
	}
}

// NextEventTime returns the due time of the lease's next event, but not later than by.
func NextEventTime(l Lease, by time.Time) time.Time {
	for _, e := range l.Events {
		if e.Status == EventUndone && e.At.Before(by) {
			by = e.At
		}
	}
	return by
}

// CloudOutdated reports whether Nova and Neutron do not have the current resources of the reservation.
func (r Reservation) CloudOutdated() bool { return r.CloudRevision < r.Revision }

// nextWhileActive chooses between the before_end_lease and the end_lease event of an active lease.
func nextWhileActive(before, end *Event, now time.Time) Due {
	if before == nil || before.Status == EventDone || before.Status == EventFailed {
		return stepAt(StepEnd, end.At, now)
	}
	if before.Status == EventInProgress {
		return Due{Step: StepBeforeEnd}
	}
	return stepAt(StepBeforeEnd, before.At, now)
}

func stepAt(step Step, when, now time.Time) Due {
	if now.Before(when) {
		return Due{Step: StepWait, At: when}
	}
	return Due{Step: step}
}

// BeginStep moves the lease to the transitional status of a step. It changes nothing if the lease already has this status. It
// returns ErrTransition if the step is not due, for example because the dates moved or the lease is being deleted.
func BeginStep(l Lease, step Step, now time.Time) (Lease, error) {
	l = l.clone()
	if l.DeleteRequested != (step == StepDelete) {
		return l, transitionError(l, step)
	}
	switch step {
	case StepStart:
		return enter(l, step, Starting, StartLease, now)
	case StepEnd:
		return enter(l, step, Terminating, EndLease, now)
	case StepBeforeEnd:
		e := l.event(BeforeEndLease)
		switch {
		case l.Status != Active || e == nil:
			return l, transitionError(l, step)
		case e.Status == EventInProgress:
			return l, nil
		case e.Status != EventUndone || !isDue(e, now):
			return l, transitionError(l, step)
		}
		e.Status = EventInProgress
		return l, nil
	case StepDelete:
		for i := range l.Events {
			if l.Events[i].Status == EventInProgress {
				l.Events[i].Status = EventFailed
			}
		}
		l.Status = Deleting
		return l, nil
	default:
		return l, transitionError(l, step)
	}
}

// enter moves lease and event to their transitional statuses, unless they already have them.
func enter(l Lease, step Step, status Status, event EventType, now time.Time) (Lease, error) {
	if l.Status == status {
		return l, nil
	}
	e := l.event(event)
	if e == nil || e.Status != EventUndone || !l.Status.CanBecome(status) || !isDue(e, now) {
		return l, transitionError(l, step)
	}
	e.Status = EventInProgress
	l.Status = status
	return l, CheckStatus(l)
}

func isDue(e *Event, now time.Time) bool { return !e.At.After(now.Add(ClockSkew)) }

// FinishStep returns the lease in the stable status after a step. The parameter
// `failed` maps the reservations that failed to their errors.
// A repeated call changes nothing. It returns ErrTransition if the step has not begun.
//
// All reservations of a lease share one result: if one fails to start or end, all reservations and the lease are in
// ERROR. If the start failed, the lease is in ERROR after its end, too, and its hosts are free.
func FinishStep(l Lease, step Step, failed map[uuid.UUID]string) (Lease, error) {
	l = l.clone()
	fail := false
	for _, r := range l.Reservations {
		_, is := failed[r.ID]
		fail = fail || is
	}
	switch step {
	case StepStart:
		return leave(l, step, Starting, StartLease, ReservationActive, fail, failed)
	case StepEnd:
		start := l.event(StartLease)
		fail = fail || start == nil || start.Status != EventDone
		return leave(l, step, Terminating, EndLease, ReservationDeleted, fail, failed)
	case StepBeforeEnd:
		e := l.event(BeforeEndLease)
		switch {
		case l.Status != Active || e == nil || e.Status == EventUndone:
			return l, transitionError(l, step)
		case e.Status == EventInProgress:
			e.Status = eventResult(fail)
		}
		return l, nil
	case StepDelete:
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
		if e.Status == eventResult(fail) && l.Status == DeriveStatus(l) && isResultOf(l, step) {
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
	l.Status = DeriveStatus(l)
	return l, CheckStatus(l)
}

// isResultOf reports whether the status of the lease is a result of the step.
func isResultOf(l Lease, step Step) bool {
	if step == StepStart {
		return l.Status == Active || l.Status == Error && l.event(EndLease).Status == EventUndone
	}
	return l.Status == Terminated || l.Status == Error
}

func eventResult(failed bool) EventStatus {
	if failed {
		return EventFailed
	}
	return EventDone
}

func transitionError(l Lease, step Step) error {
	if l.DeleteRequested && step != StepDelete {
		return fmt.Errorf("%w: lease %s is %s and shall be deleted: no %s", ErrTransition, l.ID, l.Status, step)
	}
	return fmt.Errorf("%w: lease %s is %s, no %s is due", ErrTransition, l.ID, l.Status, step)
}

// ReleasesHosts reports whether the hosts of a reservation are free after a step: after its end or deletion, unless that
// failed. A host is not reused before its reservation is known to have released it.
func ReleasesHosts(step Step, r uuid.UUID, failed map[uuid.UUID]string) bool {
	_, hasFailed := failed[r]
	return slices.Contains([]Step{StepEnd, StepDelete}, step) && !hasFailed
}
