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

// WithHostReplaced returns the lease after its i-th reservation lost a host. `replaced` is true if another host replaces the
// lost host. In an active lease, the reservation is then marked as changed, because its user has to know.
func WithHostReplaced(l Lease, i int, replaced bool) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = r.MissingResources || !replaced
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active && replaced
	return l.withDegraded()
}

// WithResourcesRestored returns the lease after the missing resources of its i-th reservation were replaced.
func WithResourcesRestored(l Lease, i int) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = false
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active
	return l.withDegraded()
}

// KeepsResources reports whether the i-th reservation keeps its resources when the lease changes from `was` to `is`. A
// reservation keeps them if its request is the same and the new dates are within the old dates, even if some resources are
// missing.
func KeepsResources(was, is Lease, i int) bool {
	return !is.StartAt.Before(was.StartAt) && !is.EndAt.After(was.EndAt) &&
		reflect.DeepEqual(was.Reservations[i].ReservationDraft, is.Reservations[i].ReservationDraft)
}

// WithUpdatedHealth returns the changed lease `is` with updated health flags. Only a reservation that keeps its resources can
// still have missing resources: every other reservation has been given all its resources anew.
func WithUpdatedHealth(was, is Lease) Lease {
	l := is.clone()
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.MissingResources = r.MissingResources && KeepsResources(was, is, i)
	}
	return l.withDegraded()
}

// withDegraded returns the lease with Degraded set if a reservation lacks resources or has got other resources, and cleared
// otherwise.
func (l Lease) withDegraded() Lease {
	l.Degraded = false
	for _, r := range l.Reservations {
		l.Degraded = l.Degraded || r.MissingResources || r.ResourcesChanged
	}
	return l
}
