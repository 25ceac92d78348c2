package lease

import (
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// BeforeEndLead is how long before a lease's end its before_end_lease event is, if neither caller nor operator says.
const BeforeEndLead = 60 * time.Minute

// Moment is a date as a caller gives it: an instant, or the word "now".
type Moment struct {
	Now bool
	At  time.Time
}

// on is the instant of a moment. "now" is the current minute, as every date was once a whole minute, but not
// before the instant given: a lease that began within this minute does not end before it began.
func (m Moment) on(now, notBefore time.Time) time.Time {
	if !m.Now {
		return m.At
	}
	at := minute(now)
	if at.Before(notBefore) && !now.Before(notBefore) {
		return notBefore
	}
	return at
}

func minute(t time.Time) time.Time { return t.UTC().Truncate(time.Minute) }

// Schedule is when a lease's events are due.
type Schedule struct {
	Start, BeforeEnd, End time.Time // BeforeEnd is zero if nothing is due then
}

// Draft is a lease that somebody asks for.
type Draft struct {
	Name, User, Project string
	Start, End          Moment
	BeforeEnd           *time.Time // nil for the default
	Reservations        []ReservationDraft
}

// Change is what somebody asks to change about a lease. Nil leaves a thing as it is.
type Change struct {
	Name         *string
	Start, End   *Moment
	BeforeEnd    *time.Time
	Reservations []ReservationChange
}

// ReservationChange is what somebody asks to change about a reservation.
type ReservationChange struct {
	ID                   string
	Type                 *string // may be repeated, not changed
	Min, Max             *int
	HypervisorProperties *string
	ResourceProperties   *string
	BeforeEnd            *string
	Amount               *int
	VCPUs                *int64
	MemoryMB             *int64
	DiskGB               *int64
	Affinity             *Affinity
	Network              *uuid.UUID
	Required             *[]netip.Addr
}

// Rename tells whether the change touches nothing but the name.
func (c Change) Rename() bool {
	return c.Start == nil && c.End == nil && c.BeforeEnd == nil && c.Reservations == nil
}

// Plan checks the dates of a new lease. Unless the draft says when, its before_end_lease event is that lead before its end,
// but not before its start; without a lead it has none.
func Plan(d Draft, lead time.Duration, now time.Time) (Schedule, error) {
	s := Schedule{Start: d.Start.on(now, time.Time{})}
	s.End = d.End.on(now, s.Start)
	switch {
	case s.Start.Before(minute(now)):
		return s, Refuse(InvalidInput, "Start date must be later than current date.")
	case !s.End.After(s.Start):
		return s, Refuse(InvalidInput, "End date must be later than start date.")
	case !s.End.After(now):
		return s, Refuse(InvalidInput, "End date must be later than current date.")
	}
	switch {
	case d.BeforeEnd != nil:
		return s.withBeforeEnd(*d.BeforeEnd)
	case lead > 0:
		s.BeforeEnd = latest(s.End.Add(-lead), s.Start)
	}
	return s, nil
}

// Replan checks the new dates of a lease. Whether it has started is told by its status, never by the clock.
func Replan(l Lease, c Change, now time.Time) (Schedule, error) {
	s := Schedule{Start: l.StartAt, End: l.EndAt}
	if c.Start != nil {
		s.Start = c.Start.on(now, time.Time{})
	}
	if c.End != nil {
		s.End = c.End.on(now, s.Start)
	}
	moved := !s.Start.Equal(l.StartAt)
	switch {
	case l.Status == Terminated || l.EndAt.Before(minute(now)):
		return s, Refuse(InvalidInput, "Terminated leases can only be renamed.")
	case moved && l.Status != Pending:
		return s, Refuse(InvalidInput, "Cannot modify the start date of already started leases.")
	case moved && s.Start.Before(minute(now)):
		return s, Refuse(InvalidInput, "Start date must be later than current date.")
	case s.End.Before(minute(now)) || s.End.Before(s.Start):
		return s, Refuse(InvalidInput, "End date must be later than current and start date.")
	}
	if before := l.event(BeforeEndLease); before != nil {
		s.BeforeEnd = latest(s.End.Add(-l.EndAt.Sub(before.At)), s.Start)
	} else {
		s.BeforeEnd = s.Start
	}
	if c.BeforeEnd == nil {
		return s, nil
	}
	return s.withBeforeEnd(*c.BeforeEnd)
}

func (s Schedule) withBeforeEnd(at time.Time) (Schedule, error) {
	if !at.After(s.Start) || !at.Before(s.End) {
		return s, Refuse(NotAuthorized, "Datetime is out of lease limits")
	}
	s.BeforeEnd = at
	return s, nil
}

// Reschedule moves a lease and its events to new dates. A before_end_lease event that has run, or runs, and lies ahead
// again will run again.
func Reschedule(l Lease, s Schedule, now time.Time) Lease {
	l = l.clone()
	l.StartAt, l.EndAt = s.Start, s.End
	for i := range l.Events {
		e := &l.Events[i]
		switch e.Type {
		case StartLease:
			e.At = s.Start
		case EndLease:
			e.At = s.End
		case BeforeEndLease:
			if !e.At.Equal(s.BeforeEnd) && s.BeforeEnd.After(now) {
				e.Status = Undone
			}
			e.At = s.BeforeEnd
		}
	}
	return l
}

// Changeable tells why a lease cannot be changed so in its status; nil if it can.
func Changeable(l Lease, c Change) error {
	switch {
	case l.DeleteRequested || !l.Status.Stable():
		return Refuse(InvalidStatus, "Invalid lease status: the lease is %s and cannot be updated now.", worded(l))
	case l.Status == Error && !c.Rename():
		return Refuse(InvalidStatus, "Invalid lease status: a lease in ERROR can only be renamed or deleted.")
	}
	return nil
}

func worded(l Lease) string {
	if l.DeleteRequested {
		return string(Deleting)
	}
	return string(l.Status)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
