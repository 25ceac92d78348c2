package lease

import "github.com/google/uuid"

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

// Refitted is a lease all of whose reservations have what they ask for, as after a change of their dates.
func Refitted(l Lease) Lease {
	l = l.clone()
	for i := range l.Reservations {
		l.Reservations[i].MissingResources = false
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
