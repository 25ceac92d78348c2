package lease

import (
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// DefaultBeforeEndLead is the time between a before_end_lease event and the end of the lease in tests. It
// equals the default of the setting BERTH_LEASE_BEFORE_END, which processes use.
const DefaultBeforeEndLead = 60 * time.Minute

// RequestedDate is a date in an API request: a point in time, or "now".
type RequestedDate struct {
	Now bool
	At  time.Time
}

// resolve returns the requested point in time. "now" means the start of the current minute, because dates in
// Blazar are whole minutes. If `notBefore` is in the current minute and has passed, resolve returns
// `notBefore` for "now", because a lease that started in the current minute must not end before its start.
func (m RequestedDate) resolve(now, notBefore time.Time) time.Time {
	if !m.Now {
		return m.At
	}
	at := startOfMinute(now)
	if at.Before(notBefore) && !now.Before(notBefore) {
		return notBefore
	}
	return at
}

func startOfMinute(t time.Time) time.Time { return t.UTC().Truncate(time.Minute) }

// Schedule holds the due times of a lease's events.
type Schedule struct {
	Start, BeforeEnd, End time.Time // BeforeEnd is zero if the lease has no before_end_lease event
}

// Draft is the content of a request to create a lease.
type Draft struct {
	Name, User, Project string
	Start, End          RequestedDate
	BeforeEnd           *time.Time // nil: the default
	Reservations        []ReservationDraft
}

// Change is the content of a request to update a lease; nil fields do not change.
type Change struct {
	Name         *string
	Start, End   *RequestedDate
	BeforeEnd    *time.Time
	Reservations []ReservationChange
}

// ReservationChange is the part of an update request that changes one reservation. If a field of
// ReservationChange is nil, the request does not change the attribute.
type ReservationChange struct {
	ID                   string
	Type                 *string // must equal the current type if given
	Min, Max             *int
	HypervisorProperties *string
	NetworkProperties    *string
	ResourceProperties   *string
	BeforeEnd            *string
	Amount               *int
	VCPUs                *int64
	MemoryMB             *int64
	DiskGB               *int64
	Affinity             *Affinity
	// flavor:instance: must be the ID of the reservation or of its flavor if given
	Flavor             *string
	Network            *uuid.UUID
	Required           *[]netip.Addr
	NetworkName        *string
	NetworkDescription *string
}

// OnlyRenames reports whether the request changes nothing but the name of the lease.
func (c Change) OnlyRenames() bool {
	return c.Start == nil && c.End == nil && c.BeforeEnd == nil && c.Reservations == nil
}

// NewSchedule returns the schedule of a new lease, or a fault if the dates are not valid. If the draft has no
// date for the before_end_lease event, the event is due `lead` before the end of the lease, but not before
// the start of the lease. If the draft has no date for the before_end_lease event and `lead` is 0, the lease
// has no before_end_lease event.
func NewSchedule(d Draft, lead time.Duration, now time.Time) (Schedule, error) {
	s := Schedule{Start: d.Start.resolve(now, time.Time{})}
	s.End = d.End.resolve(now, s.Start)
	switch {
	case s.Start.Before(startOfMinute(now)):
		return s, Faultf(InvalidInput, "Start date must be later than current date.")
	case !s.End.After(s.Start):
		return s, Faultf(InvalidInput, "End date must be later than start date.")
	case !s.End.After(now):
		return s, Faultf(InvalidInput, "End date must be later than current date.")
	}
	switch {
	case d.BeforeEnd != nil:
		return s.withBeforeEndAt(*d.BeforeEnd)
	case lead > 0:
		s.BeforeEnd = laterOf(s.End.Add(-lead), s.Start)
	}
	return s, nil
}

// UpdatedSchedule returns the schedule of a lease after an update request, or a fault if the new dates are
// not allowed. UpdatedSchedule uses the status of the lease, and not the clock, to decide whether the lease
// has started.
func UpdatedSchedule(l Lease, c Change, now time.Time) (Schedule, error) {
	s := Schedule{Start: l.StartAt, End: l.EndAt}
	if c.Start != nil {
		s.Start = c.Start.resolve(now, time.Time{})
	}
	if c.End != nil {
		s.End = c.End.resolve(now, s.Start)
	}
	moved := !s.Start.Equal(l.StartAt)
	switch {
	case l.Status == Terminated || l.EndAt.Before(startOfMinute(now)):
		return s, Faultf(InvalidInput, "Terminated leases can only be renamed.")
	case moved && l.Status != Pending:
		return s, Faultf(InvalidInput, "Cannot modify the start date of already started leases.")
	case moved && s.Start.Before(startOfMinute(now)):
		return s, Faultf(InvalidInput, "Start date must be later than current date.")
	case s.End.Before(startOfMinute(now)) || s.End.Before(s.Start):
		return s, Faultf(InvalidInput, "End date must be later than current and start date.")
	}
	if before := l.event(BeforeEndLease); before != nil {
		s.BeforeEnd = laterOf(s.End.Add(-l.EndAt.Sub(before.At)), s.Start)
	} else {
		s.BeforeEnd = s.Start
	}
	if c.BeforeEnd == nil {
		return s, nil
	}
	return s.withBeforeEndAt(*c.BeforeEnd)
}

func (s Schedule) withBeforeEndAt(at time.Time) (Schedule, error) {
	if !at.After(s.Start) || !at.Before(s.End) {
		return s, Faultf(NotAuthorized, "Datetime is out of lease limits")
	}
	s.BeforeEnd = at
	return s, nil
}

// ApplySchedule sets the dates of a lease and of the lease's events to the dates of a new schedule. If the
// new schedule moves the before_end_lease event to a date in the future, the event becomes UNDONE again, even
// if the event is running or has run.
func ApplySchedule(l Lease, s Schedule, now time.Time) Lease {
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
				e.Status = EventUndone
			}
			e.At = s.BeforeEnd
		}
	}
	return l
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
