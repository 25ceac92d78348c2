package lease

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// RecheckInterval is the interval at which a lease that waits for a resource of another lease checks whether
// the resource has been released. When a lease releases a resource, berth also nudges (signals) the workflow
// of each lease that waits for it, so a waiting lease usually checks earlier.
const RecheckInterval = 10 * time.Second

// OverdueAfter is the time after the date of its start or end from which on a lease is overdue.
const OverdueAfter = 10 * time.Second

// StuckAfter is the time after which a lease whose calls keep failing counts as stuck: it may keep its hosts
// for a long time.
const StuckAfter = time.Minute

// ClockSkew is the assumed maximum difference between the clocks of two processes.
const ClockSkew = 5 * time.Second

// LeaderCount is the number of workflows that wake up first if many leases are due at the same instant. The
// workflows that wake up first run the due steps of all leases that are due at this instant, so that the
// workflows of the other leases can wake up later.
const LeaderCount = 4

// Next returns the next step of a lease. Deletion has priority. If a step has begun, Next returns this step
// again, because the worker that ran the step may have died. If several steps are overdue, Next returns them
// in the order start, before_end, end.
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
	case l.Status == Pending && l.hasStuckBlocker():
		if !now.Before(end.At) {
			return Due{Step: StepExpire}
		}
		return Due{Step: StepWait, At: earlierOf(now.Add(RecheckInterval), end.At)}
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
	case l.Status == Error && end.Status == EventUndone && !now.Before(end.At):
		return Due{Step: StepEnd}
	case l.Status == Error && slices.ContainsFunc(l.Reservations, l.NeedsClearing):
		return Due{Step: StepClear}
	case l.Status == Error && end.Status == EventUndone:
		return stepAt(StepEnd, end.At, now)
	default:
		return Due{Step: StepStop}
	}
}

// NeedsClearing reports whether resources of a reservation of a lease in ERROR must still be removed from
// Nova, Neutron and Placement. If the start of the lease has failed and the reservation has a failed call,
// the removal of its resources has failed, too. If the end of the lease has failed, the reservation keeps its
// allocations until its resources are removed.
func (l Lease) NeedsClearing(r Reservation) bool {
	end := l.event(EndLease)
	if l.Status != Error || end == nil {
		return false
	}
	if end.Status == EventUndone {
		return r.Failure != nil
	}
	return len(r.Hosts)+len(r.ResourceIDs) > 0 || r.HoldsAddresses
}

// NextEventTime returns the due time of the lease's next event, or `by` if no event is due before `by`.
func NextEventTime(l Lease, by time.Time) time.Time {
	for _, e := range l.Events {
		if e.Status == EventUndone && e.At.Before(by) {
			by = e.At
		}
	}
	return by
}

// CloudOutdated reports whether the resources of the reservation have changed since Nova and Neutron were
// last updated.
func (r Reservation) CloudOutdated() bool { return r.CloudRevision < r.Revision }

// nextWhileActive returns the next step of an active lease: StepBeforeEnd, or StepEnd if the before_end_lease
// event is over or absent, or StepWait until one of the two is due.
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

// BeginStep returns the lease in the transitional status of a step, for example STARTING. If the lease
// already has the transitional status of the step, BeginStep returns the lease unchanged. BeginStep returns
// ErrTransition if the step is not due. For example, a step is no longer due if the dates of the lease have
// changed or if the lease is being deleted.
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
		e.Runs++
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

// enter sets the lease and the event of a step to their transitional statuses. If the lease already has the
// transitional status, enter changes nothing.
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

// FinishStep returns the lease in the stable status after a step, for example ACTIVE. The parameter `failed`
// contains the error text of each reservation for which the step has failed. If FinishStep is called again
// with the same result, FinishStep changes nothing. FinishStep returns ErrTransition if the step has not
// begun yet.
//
// If a reservation of the lease fails to start or end, FinishStep sets the lease and all its reservations to
// ERROR. If the start of a lease failed, the lease stays in ERROR after its end, even if the end succeeds and
// its hosts are free.
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
	case StepClear:
		if l.Status != Error {
			return l, transitionError(l, step)
		}
		return l, nil
	case StepDelete:
		if l.Status != Deleting {
			return l, transitionError(l, step)
		}
		if fail {
			return l, fmt.Errorf(
				"%w: lease %s cannot be deleted, because reservations still hold resources: %v",
				ErrTransition, l.ID, failed,
			)
		}
		return l, nil
	default:
		return l, transitionError(l, step)
	}
}

// leave sets the reservations, the event and the lease to their stable statuses after a step.
func leave(
	l Lease,
	step Step,
	from Status,
	event EventType,
	onSuccess ReservationStatus,
	fail bool,
	failed map[uuid.UUID]string,
) (Lease, error) {
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

// isResultOf reports whether the current status of the lease is a possible result of the step.
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
		return fmt.Errorf(
			"%w: lease %s is %s and has a delete request, which does not allow the step %s",
			ErrTransition, l.ID, l.Status, step,
		)
	}
	return fmt.Errorf("%w: lease %s is %s, and the step %s is not due", ErrTransition, l.ID, l.Status, step)
}

// ReleasesHosts reports whether the result of a step frees the hosts of a reservation. The steps end and
// clear free the hosts of a reservation unless the step failed for this reservation, because a host is not
// reused until it is certain that the reservation has released the host.
func ReleasesHosts(step Step, r uuid.UUID, failed map[uuid.UUID]string) bool {
	_, hasFailed := failed[r]
	return slices.Contains([]Step{StepEnd, StepClear}, step) && !hasFailed
}
