package lease

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// CheckName returns a fault if the name of a lease is not valid.
func CheckName(name string) error {
	const longest = 80
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return Faultf(InvalidInput, "The lease name must not be empty.")
	case n > longest:
		return Faultf(InvalidInput, "The lease name must not be longer than %d characters.", longest)
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return Faultf(InvalidInput, "The lease name must be valid UTF-8 without NUL characters.")
	}
	return nil
}

// maxReservations is the maximum number of reservations of a lease. If a lease had more reservations than
// maxReservations, the lease's workflow could not start the lease in time.
const maxReservations = 100

// CheckDraft returns a fault if the draft of a lease is not valid. CheckDraft does not check the dates of the
// draft.
func CheckDraft(d Draft) error {
	if err := CheckName(d.Name); err != nil {
		return err
	}
	if len(d.Reservations) > maxReservations {
		return Faultf(InvalidInput, "A lease must not have more than %d reservations.", maxReservations)
	}
	for _, r := range d.Reservations {
		if err := CheckReservation(r); err != nil {
			return err
		}
	}
	return checkLeaseRequirements(d.Reservations, nil)
}

// NewLease returns a new pending lease with the content of the draft.
func NewLease(d Draft, s Schedule, newID func() uuid.UUID) Lease {
	l := Lease{
		ID:      newID(),
		Name:    d.Name,
		User:    d.User,
		Project: d.Project,
		Status:  Pending,
		StartAt: s.Start,
		EndAt:   s.End,
	}
	for _, r := range d.Reservations {
		l.Reservations = append(l.Reservations,
			Reservation{ReservationDraft: r.normalized(), ID: newID(), Status: ReservationPending})
	}
	l.Events = []Event{
		{
			ID:     newID(),
			Type:   StartLease,
			At:     s.Start,
			Status: EventUndone,
		},
		{
			ID:     newID(),
			Type:   EndLease,
			At:     s.End,
			Status: EventUndone,
		},
	}
	if !s.BeforeEnd.IsZero() {
		l.Events = append(l.Events, Event{
			ID:     newID(),
			Type:   BeforeEndLease,
			At:     s.BeforeEnd,
			Status: EventUndone,
		})
	}
	return l
}

// ApplyChange returns the lease after an update request, or a fault if the update is not allowed. ApplyChange
// does not choose hosts for the changed reservations.
func ApplyChange(l Lease, c Change, now time.Time) (Lease, error) {
	l = l.clone()
	if err := checkChangeable(l, c); err != nil {
		return l, err
	}
	if c.Name != nil {
		if err := CheckName(*c.Name); err != nil {
			return l, err
		}
		l.Name = *c.Name
	}
	if c.OnlyRenames() {
		return l, nil
	}
	s, err := UpdatedSchedule(l, c, now)
	if err != nil {
		return l, err
	}
	was := l.clone()
	for _, rc := range c.Reservations {
		if err := amendReservation(&l, rc); err != nil {
			return l, err
		}
	}
	for i, r := range l.Reservations {
		if reflect.DeepEqual(was.Reservations[i].ReservationDraft, r.ReservationDraft) {
			continue // a reservation that older rules allowed stays as it is
		}
		if err := checkChange(was.Reservations[i], r.ReservationDraft); err != nil {
			return l, err
		}
	}
	if err := checkLeaseRequirements(l.drafts(), was.drafts()); err != nil {
		return l, err
	}
	return ApplySchedule(l, s, now), nil
}

// drafts returns the attributes that the reservations of the lease request.
func (l Lease) drafts() []ReservationDraft {
	all := make([]ReservationDraft, len(l.Reservations))
	for i, r := range l.Reservations {
		all[i] = r.ReservationDraft
	}
	return all
}

// checkChange returns a fault if the reservation `was` must not be changed to the draft `is`.
func checkChange(was Reservation, is ReservationDraft) error {
	if err := CheckReservation(is); err != nil {
		return err
	}
	return resourceTypes[is.Type].CheckChange(was, is)
}

func amendReservation(l *Lease, c ReservationChange) error {
	if c.ID == "" {
		return Faultf(MissingParameter, "Missing parameter id")
	}
	i := slices.IndexFunc(l.Reservations, func(r Reservation) bool { return r.ID.String() == c.ID })
	if i < 0 {
		return Faultf(UnknownReservation,
			"Please enter valid reservation IDs: %s is not a reservation of this lease.", c.ID)
	}
	r := &l.Reservations[i]
	if c.Type != nil && *c.Type != r.Type {
		return Faultf(CannotUpdate, "The resource type of a reservation cannot be updated.")
	}
	if r.Type == FlavorInstance && c.Flavor != nil && *c.Flavor != r.ID.String() && *c.Flavor != r.Flavor.ID {
		return Faultf(CannotUpdate, "The flavor of a reservation cannot be updated.")
	}
	c.ApplyTo(&r.ReservationDraft)
	return nil
}

// ApplyTo writes the fields that the change sets to the draft. ApplyTo ignores the fields of the change that
// reservations of this resource type do not have.
func (c ReservationChange) ApplyTo(d *ReservationDraft) {
	switch d.Type {
	case PhysicalHost:
		set(&d.Min, c.Min)
		set(&d.Max, c.Max)
		setRequirements(&d.HypervisorProperties, c.HypervisorProperties)
		setRequirements(&d.ResourceProperties, c.ResourceProperties)
		set(&d.BeforeEnd, c.BeforeEnd)
	case VirtualInstance:
		set(&d.Amount, c.Amount)
		set(&d.VCPUs, c.VCPUs)
		set(&d.MemoryMB, c.MemoryMB)
		set(&d.DiskGB, c.DiskGB)
		set(&d.Affinity, c.Affinity)
		setRequirements(&d.ResourceProperties, c.ResourceProperties)
	case FlavorInstance:
		set(&d.Amount, c.Amount)
		set(&d.Affinity, c.Affinity)
	case NetworkSegment:
		set(&d.NetworkName, c.NetworkName)
		set(&d.NetworkDescription, c.NetworkDescription)
		setRequirements(&d.NetworkProperties, c.NetworkProperties)
		setRequirements(&d.ResourceProperties, c.ResourceProperties)
		set(&d.BeforeEnd, c.BeforeEnd)
	case Device:
		set(&d.Min, c.Min)
		set(&d.Max, c.Max)
		setRequirements(&d.ResourceProperties, c.ResourceProperties)
		set(&d.BeforeEnd, c.BeforeEnd)
	case FloatingIP:
		set(&d.Amount, c.Amount)
		set(&d.Network, c.Network)
		set(&d.Required, c.Required)
	}
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// setRequirements writes requirements in their normal form. Requirements that differ from the present ones
// only in blanks are no change: older versions stored requirements as clients wrote them, and an active
// reservation of instances must not change its requirements.
func setRequirements(to *string, value *string) {
	if value == nil {
		return
	}
	if is := NormalizeRequirements(*value); is != NormalizeRequirements(*to) {
		*to = is
	}
}

// checkChangeable returns a fault if the status of the lease does not allow the change.
func checkChangeable(l Lease, c Change) error {
	switch {
	case l.DeleteRequested || !l.Status.Stable():
		return Faultf(InvalidStatus, "Invalid lease status: the lease is %s and cannot be updated now.",
			statusText(l))
	case l.Status == Error && !c.OnlyRenames():
		return Faultf(InvalidStatus, "Invalid lease status: a lease in ERROR can only be renamed or deleted.")
	}
	return nil
}

func statusText(l Lease) string {
	if l.DeleteRequested {
		return string(Deleting)
	}
	return string(l.Status)
}
