package lease

import (
	"reflect"

	"github.com/google/uuid"
)

// Unwell is a reservation that holds a host that cannot be used, or that lacks resources.
type Unwell struct {
	Reservation uuid.UUID
	Host        int64 // 0: it holds none such, and lacks resources
}

// Replaced is a lease of which the i-th reservation lost a host. Whole tells whether it got as much elsewhere; who uses
// an active lease has to know that it is elsewhere.
func Replaced(l Lease, i int, whole bool) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = r.MissingResources || !whole
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active && whole
	return l.judged()
}

// Refilled is a lease of which the i-th reservation got back what it lacked.
func Refilled(l Lease, i int) Lease {
	l = l.clone()
	r := &l.Reservations[i]
	r.MissingResources = false
	r.ResourcesChanged = r.ResourcesChanged || l.Status == Active
	return l.judged()
}

// Kept tells whether the i-th reservation of a changed lease asks for nothing but a part of the time that it has: it keeps
// what it holds, also where that is less than it asks for.
func Kept(was, is Lease, i int) bool {
	return !is.StartAt.Before(was.StartAt) && !is.EndAt.After(was.EndAt) &&
		reflect.DeepEqual(was.Reservations[i].ReservationDraft, is.Reservations[i].ReservationDraft)
}

// Refitted is a changed lease whose reservations have what they ask for, but for those that are kept as they were.
func Refitted(was, is Lease) Lease {
	l := is.clone()
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.MissingResources = r.MissingResources && Kept(was, is, i)
	}
	return l.judged()
}

// judged is degraded while a reservation is not what it was.
func (l Lease) judged() Lease {
	l.Degraded = false
	for _, r := range l.Reservations {
		l.Degraded = l.Degraded || r.MissingResources || r.ResourcesChanged
	}
	return l
}
