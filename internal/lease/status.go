package lease

import (
	"fmt"
	"slices"
)

// transitions says which status may follow which.
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

// eventTransitions leaves out that a before_end_lease event is armed again when the lease's end moves.
var eventTransitions = map[EventStatus][]EventStatus{
	Undone:     {InProgress},
	InProgress: {Done, Failed},
	Done:       {},
	Failed:     {},
}

// combination is what reservations and events may be while a lease is in one status. Nil means anything.
type combination struct {
	reservations []ReservationStatus
	start, end   []EventStatus
}

var settled = []EventStatus{Undone, Done, Failed}

// combinations ties the three state machines together. The before_end_lease event takes no part. A lease that
// is deleted while it starts or ends gives the running event up, so DELETING never has one in progress.
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
	Deleting:   {nil, settled, settled},
	Updating:   {nil, settled, settled},
}

// Stable tells whether a lease rests in that status, rather than being on its way through.
func (s Status) Stable() bool {
	return s == Pending || s == Active || s == Terminated || s == Error
}

// CanBecome tells whether the second status may follow the first.
func (s Status) CanBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// Check tells what in the lease's reservations and events does not fit its status; nil if all does.
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

// Derive is the stable status that a lease's events and reservations amount to.
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
