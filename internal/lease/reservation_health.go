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

// WithHostReplaced returns the lease as it is after the i-th reservation has lost a host. The parameter
// `replaced` is true if another host has replaced the lost host. If the lease is active and the host was
// replaced, the reservation is marked as changed, because the user of the reservation has to know that the
// reservation has another host.
func WithHostReplaced(l Lease, i int, replaced bool) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = r.MissingResources || !replaced
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active && replaced
	return l.withDegraded()
}

// WithResourcesRestored returns the lease as it is after the i-th reservation has got replacements for its
// missing resources.
func WithResourcesRestored(l Lease, i int) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = false
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active
	return l.withDegraded()
}

// KeepsResources reports whether the i-th reservation keeps its hosts or floating IPs when the lease changes
// from `was` to `is`. A reservation keeps its resources if its request is the same and the new dates are
// within the old dates, even if some of its resources are missing.
func KeepsResources(was, is Lease, i int) bool {
	return !is.StartAt.Before(was.StartAt) && !is.EndAt.After(was.EndAt) &&
		reflect.DeepEqual(was.Reservations[i].ReservationDraft, is.Reservations[i].ReservationDraft)
}

// WithUpdatedHealth returns the changed lease `is` with updated health flags. If the change gave a
// reservation new resources, WithUpdatedHealth clears the reservation's flag missing_resources.
func WithUpdatedHealth(was, is Lease) Lease {
	l := is.clone()
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.MissingResources = r.MissingResources && KeepsResources(was, is, i)
	}
	return l.withDegraded()
}

// withDegraded returns the lease with an updated field Degraded: true if a reservation lacks resources or has
// got other resources, and false otherwise.
func (l Lease) withDegraded() Lease {
	l.Degraded = false
	for _, r := range l.Reservations {
		l.Degraded = l.Degraded || r.MissingResources || r.ResourcesChanged
	}
	return l
}
