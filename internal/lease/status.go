package lease

import (
	"fmt"
	"slices"
)

// transitions lists, for each lease status, the statuses to which the lease may change.
var transitions = map[Status][]Status{
	Creating:    {Pending, Deleting},
	Pending:     {Starting, Updating, Deleting},
	Starting:    {Active, Error, Deleting},
	Active:      {Terminating, Updating, Deleting},
	Updating:    {Pending, Active, Terminated, Error, Deleting},
	Terminating: {Terminated, Error, Deleting},
	Terminated:  {Updating, Deleting},
	Error:       {Terminating, Updating, Deleting},
	Deleting:    {Error},
}

// reservationTransitions lists, for each reservation status, the statuses to which the status may change.
// Only a test reads reservationTransitions and eventTransitions: it compares every sequence of steps with
// them.
var reservationTransitions = map[ReservationStatus][]ReservationStatus{
	ReservationPending: {ReservationActive, ReservationDeleted, ReservationError},
	ReservationActive:  {ReservationDeleted, ReservationError},
	ReservationError:   {ReservationDeleted},
	ReservationDeleted: {},
}

// eventTransitions lists, for each event status, the statuses to which the event may change. eventTransitions
// does not contain the reset of a before_end_lease event to UNDONE, which happens when the date of the event
// changes.
var eventTransitions = map[EventStatus][]EventStatus{
	EventUndone:     {EventInProgress},
	EventInProgress: {EventDone, EventFailed},
	EventDone:       {},
	EventFailed:     {},
}

// combination lists the statuses of reservations and events that are allowed together with one lease status.
// If the field `reservations` is nil, the reservations may have any status.
type combination struct {
	reservations []ReservationStatus
	start, end   []EventStatus
}

var finished = []EventStatus{EventUndone, EventDone, EventFailed}

// combinations says which statuses of leases, reservations and events may occur together. The table
// `combinations` does not restrict the status of the before_end_lease event. When the deletion of a lease
// begins, an event that is IN_PROGRESS becomes ERROR, so a lease in DELETING has no event in IN_PROGRESS.
var combinations = map[Status]combination{
	Creating: {
		[]ReservationStatus{ReservationPending},
		[]EventStatus{EventUndone},
		[]EventStatus{EventUndone},
	},
	Pending: {
		[]ReservationStatus{ReservationPending},
		[]EventStatus{EventUndone},
		[]EventStatus{EventUndone},
	},
	Starting: {[]ReservationStatus{ReservationPending, ReservationActive, ReservationError},
		[]EventStatus{EventInProgress}, []EventStatus{EventUndone}},
	Active: {[]ReservationStatus{ReservationActive}, []EventStatus{EventDone}, []EventStatus{EventUndone}},
	Terminating: {[]ReservationStatus{ReservationActive, ReservationDeleted, ReservationError},
		[]EventStatus{EventDone, EventFailed}, []EventStatus{EventInProgress}},
	Terminated: {[]ReservationStatus{ReservationDeleted}, []EventStatus{EventDone}, []EventStatus{EventDone}},
	Error: {
		[]ReservationStatus{ReservationError},
		[]EventStatus{EventDone, EventFailed},
		[]EventStatus{EventUndone, EventFailed},
	},
	Deleting: {nil, finished, finished},
	Updating: {nil, finished, finished},
}

// Stable reports whether a lease can keep the status, because no step is in progress.
func (s Status) Stable() bool {
	return s == Pending || s == Active || s == Terminated || s == Error
}

// CanBecome reports whether a lease may change from the status s to the status `next`.
func (s Status) CanBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// CheckStatus returns an error if the statuses of reservations and events do not fit the status of the lease.
func CheckStatus(l Lease) error {
	c, ok := combinations[l.Status]
	if !ok {
		return fmt.Errorf("lease %s has the unknown status %q", l.ID, l.Status)
	}
	for _, r := range l.Reservations {
		if c.reservations != nil && !slices.Contains(c.reservations, r.Status) {
			return fmt.Errorf(
				"lease %s is %s, but its reservation %s is %s, which that lease status does not allow",
				l.ID, l.Status, r.ID, r.Status,
			)
		}
	}
	for _, want := range []struct {
		event   EventType
		allowed []EventStatus
	}{{StartLease, c.start}, {EndLease, c.end}} {
		e := l.event(want.event)
		if e == nil {
			return fmt.Errorf("lease %s has no event %s", l.ID, want.event)
		}
		if !slices.Contains(want.allowed, e.Status) {
			return fmt.Errorf(
				"lease %s is %s, but its event %s is %s, which that lease status does not allow",
				l.ID, l.Status, e.Type, e.Status,
			)
		}
	}
	return nil
}

// DeriveStatus computes the stable status of a lease from the statuses of the lease's events and
// reservations.
func DeriveStatus(l Lease) Status {
	start, end := l.event(StartLease), l.event(EndLease)
	if start == nil || end == nil {
		return Error
	}
	switch {
	case start.Status == EventUndone && end.Status == EventUndone:
		l.Status = Pending
	case start.Status == EventDone && end.Status == EventUndone:
		l.Status = Active
	case start.Status == EventDone && end.Status == EventDone:
		l.Status = Terminated
	default:
		return Error
	}
	if CheckStatus(l) != nil {
		return Error
	}
	return l.Status
}
