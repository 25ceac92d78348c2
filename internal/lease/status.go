package lease

import (
	"fmt"
	"slices"
)

// transitions lists the allowed changes of a lease's status.
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

var reservationTransitions = map[ReservationStatus][]ReservationStatus{
	ReservationPending: {ReservationActive, ReservationDeleted, ReservationError},
	ReservationActive:  {ReservationDeleted, ReservationError},
	ReservationError:   {ReservationDeleted},
	ReservationDeleted: {},
}

// eventTransitions does not contain the reset of a before_end_lease event to UNDONE when the end of the lease moves.
var eventTransitions = map[EventStatus][]EventStatus{
	Undone:     {InProgress},
	InProgress: {Done, Failed},
	Done:       {},
	Failed:     {},
}

// combination lists the statuses of reservations and events that one lease status allows. nil allows all.
type combination struct {
	reservations []ReservationStatus
	start, end   []EventStatus
}

var finished = []EventStatus{Undone, Done, Failed}

// combinations connects the three state machines. The before_end_lease event has no part in it. Deleting a lease that
// is starting or ending fails the running event, so a DELETING lease never has one IN_PROGRESS.
var combinations = map[Status]combination{
	Creating: {[]ReservationStatus{ReservationPending}, []EventStatus{Undone}, []EventStatus{Undone}},
	Pending:  {[]ReservationStatus{ReservationPending}, []EventStatus{Undone}, []EventStatus{Undone}},
	Starting: {[]ReservationStatus{ReservationPending, ReservationActive, ReservationError},
		[]EventStatus{InProgress}, []EventStatus{Undone}},
	Active: {[]ReservationStatus{ReservationActive}, []EventStatus{Done}, []EventStatus{Undone}},
	Terminating: {[]ReservationStatus{ReservationActive, ReservationDeleted, ReservationError},
		[]EventStatus{Done, Failed}, []EventStatus{InProgress}},
	Terminated: {[]ReservationStatus{ReservationDeleted}, []EventStatus{Done}, []EventStatus{Done}},
	Error:      {[]ReservationStatus{ReservationError}, []EventStatus{Done, Failed}, []EventStatus{Undone, Failed}},
	Deleting:   {nil, finished, finished},
	Updating:   {nil, finished, finished},
}

// Stable reports whether the status is not transitional.
func (s Status) Stable() bool {
	return s == Pending || s == Active || s == Terminated || s == Error
}

// CanBecome reports whether a lease may change from one status to the next.
func (s Status) CanBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// Check returns an error if the statuses of reservations and events do not fit the status of the lease.
func Check(l Lease) error {
	c, ok := combinations[l.Status]
	if !ok {
		return fmt.Errorf("lease %s has no known status: %q", l.ID, l.Status)
	}
	for _, r := range l.Reservations {
		if c.reservations != nil && !slices.Contains(c.reservations, r.Status) {
			return fmt.Errorf("lease %s is %s and its reservation %s is %s", l.ID, l.Status, r.ID, r.Status)
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
			return fmt.Errorf("lease %s is %s and its event %s is %s", l.ID, l.Status, e.Type, e.Status)
		}
	}
	return nil
}

// Derive returns the stable status that follows from the statuses of events and reservations.
func Derive(l Lease) Status {
	start, end := l.event(StartLease), l.event(EndLease)
	if start == nil || end == nil {
		return Error
	}
	switch {
	case start.Status == Undone && end.Status == Undone:
		l.Status = Pending
	case start.Status == Done && end.Status == Undone:
		l.Status = Active
	case start.Status == Done && end.Status == Done:
		l.Status = Terminated
	default:
		return Error
	}
	if Check(l) != nil {
		return Error
	}
	return l.Status
}
