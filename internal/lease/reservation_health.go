package lease

import (
	"reflect"

	"github.com/google/uuid"
)

// UnhealthyReservation is a reservation with a failed host or with missing resources.
type UnhealthyReservation struct {
	Reservation uuid.UUID
	Host        int64 // 0: no failed host, but resources are missing
}

// WithHostReplaced returns the lease after its i-th reservation lost a host. `replaced` is true if another host replaces it;
// a reservation of an active lease is then marked as changed, because its user has to know.
func WithHostReplaced(l Lease, i int, replaced bool) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = r.MissingResources || !replaced
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active && replaced
	return l.withDegraded()
}

// WithResourcesRestored returns the lease after its i-th reservation got its missing resources back.
func WithResourcesRestored(l Lease, i int) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = false
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active
	return l.withDegraded()
}

// KeepsResources reports whether the i-th reservation of a changed lease keeps its resources: it asks for the same within the
// time that it already has. It keeps them even if some are missing.
func KeepsResources(was, is Lease, i int) bool {
	return !is.StartAt.Before(was.StartAt) && !is.EndAt.After(was.EndAt) &&
		reflect.DeepEqual(was.Reservations[i].ReservationDraft, is.Reservations[i].ReservationDraft)
}

// WithUpdatedHealth returns a changed lease with updated health flags: every reservation has all its resources, except those
// that kept theirs.
func WithUpdatedHealth(was, is Lease) Lease {
	l := is.clone()
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.MissingResources = r.MissingResources && KeepsResources(was, is, i)
	}
	return l.withDegraded()
}

// withDegraded sets Degraded if a reservation lacks resources or got other ones.
func (l Lease) withDegraded() Lease {
	l.Degraded = false
	for _, r := range l.Reservations {
		l.Degraded = l.Degraded || r.MissingResources || r.ResourcesChanged
	}
	return l
}
