package lease

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Recheck is how long a lease whose host is not yet free waits before it looks again. The one that leaves the
// host nudges it earlier.
const Recheck = 10 * time.Second

// Skew is how far the clocks of those who decide that a step is due and of those who take it may differ.
const Skew = 5 * time.Second

// Vanguard is how many of the leases that are due at one instant are there at the instant, to take the step for all.
const Vanguard = 4

// Next is what is due for a lease at that instant. A deletion wins over everything. What was begun is taken up
// again, because its worker may have died; what is overdue is done in the order start, before_end, end.
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
		due := whileActive(before, end, now)
		if due.Step == Wait && slices.ContainsFunc(l.Reservations, Reservation.Outdated) {
			return Due{Step: Refit}
		}
		return due
	case l.Status == Error && end.Status == Undone:
		return at(End, end.At, now)
	default:
		return Due{Step: Stop}
	}
}

// Upcoming is when the lease's next event is due, or the given instant if that is earlier.
func Upcoming(l Lease, by time.Time) time.Time {
	for _, e := range l.Events {
		if e.Status == Undone && e.At.Before(by) {
			by = e.At
		}
	}
	return by
}

// Outdated tells whether the cloud was not yet told what the reservation has become.
func (r Reservation) Outdated() bool { return r.Shaped < r.Shape }

// whileActive chooses between the two events that an active lease still has before it.
func whileActive(before, end *Event, now time.Time) Due {
	if before == nil || before.Status == Done || before.Status == Failed {
		return at(End, end.At, now)
	}
	if before.Status == InProgress {
		return Due{Step: BeforeEnd}
	}
	return at(BeforeEnd, before.At, now)
}

func at(step Step, when, now time.Time) Due {
	if now.Before(when) {
		return Due{Step: Wait, At: when}
	}
	return Due{Step: step}
}

// Begin enters the transitional status of a step. Where the lease is there already, nothing changes. A step
// that is not due (any longer) is refused with ErrTransition: somebody moved the dates, or deletes the lease.
func Begin(l Lease, step Step, now time.Time) (Lease, error) {
	l = l.clone()
	if l.DeleteRequested != (step == Delete) {
		return l, refused(l, step)
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
			return l, refused(l, step)
		case e.Status == InProgress:
			return l, nil
		case e.Status != Undone || !isDue(e, now):
			return l, refused(l, step)
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
		return l, refused(l, step)
	}
}

// enter moves lease and event into a step, or finds them there.
func enter(l Lease, step Step, into Status, which EventType, now time.Time) (Lease, error) {
	if l.Status == into {
		return l, nil
	}
	e := l.event(which)
	if e == nil || e.Status != Undone || !l.Status.CanBecome(into) || !isDue(e, now) {
		return l, refused(l, step)
	}
	e.Status = InProgress
	l.Status = into
	return l, Check(l)
}

func isDue(e *Event, now time.Time) bool { return !e.At.After(now.Add(Skew)) }

// Finish is the stable state after a step of which the named reservations failed, with the reasons. A repeated
// finish changes nothing; one from another time is refused with ErrTransition.
//
// Of a lease every reservation shares the fate: if one fails to start or to end, all are in error, and so is
// the lease. The end of a lease whose start failed leaves it in ERROR, ended, with its hosts free.
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
			return l, refused(l, step)
		case e.Status == InProgress:
			e.Status = verdict(fail)
		}
		return l, nil
	case Delete:
		if l.Status != Deleting {
			return l, refused(l, step)
		}
		if fail {
			return l, fmt.Errorf("%w: lease %s still holds what it was given: %v", ErrTransition, l.ID, failed)
		}
		return l, nil
	default:
		return l, refused(l, step)
	}
}

// leave brings reservations, event and lease out of a step.
func leave(l Lease, step Step, from Status, which EventType, good ReservationStatus, fail bool, failed map[uuid.UUID]string) (Lease, error) {
	e := l.event(which)
	if e == nil {
		return l, refused(l, step)
	}
	if l.Status != from {
		if e.Status == verdict(fail) && l.Status == Derive(l) && follows(l, step) {
			return l, nil
		}
		return l, refused(l, step)
	}
	e.Status = verdict(fail)
	for i := range l.Reservations {
		r := &l.Reservations[i]
		if reason := failed[r.ID]; reason != "" {
			r.LastError = reason
		}
		if fail {
			r.Status = ReservationError
		} else {
			r.Status = good
		}
	}
	l.Status = Derive(l)
	return l, Check(l)
}

// follows tells whether the lease rests where that step leaves one.
func follows(l Lease, step Step) bool {
	if step == Start {
		return l.Status == Active || l.Status == Error && l.event(EndLease).Status == Undone
	}
	return l.Status == Terminated || l.Status == Error
}

func verdict(failed bool) EventStatus {
	if failed {
		return Failed
	}
	return Done
}

func refused(l Lease, step Step) error {
	if l.DeleteRequested && step != Delete {
		return fmt.Errorf("%w: lease %s is %s and shall be deleted: no %s", ErrTransition, l.ID, l.Status, step)
	}
	return fmt.Errorf("%w: lease %s is %s, no %s is due", ErrTransition, l.ID, l.Status, step)
}

// Released tells whether a reservation's hosts are free after the step: after an end or a deletion, unless it
// is the one that failed. A host is given to nobody else while its reservation is not known to have left it.
func Released(step Step, r uuid.UUID, failed map[uuid.UUID]string) bool {
	_, bad := failed[r]
	return slices.Contains([]Step{End, Delete}, step) && !bad
}
