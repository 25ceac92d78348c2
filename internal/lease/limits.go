package lease

import (
	"slices"
	"time"
)

// Limits are what the operator asks of leases.
type Limits struct {
	Cleaning time.Duration // a host is given to nobody for so long after a lease's end
	Longest  time.Duration // of a lease, from start to end; 0: any
	Exempt   []string      // projects whose leases may be longer
	Lead     time.Duration // the before_end_lease event is so long before the end, if the caller does not say when; 0: there is none
	Shuffled bool          // hosts are chosen at random among those that are equally good
}

// CheckNew refuses a new lease of a project that is too long.
func (m Limits) CheckNew(project string, s Schedule) error {
	return m.check(NotAuthorized, project, s.End.Sub(s.Start))
}

// CheckChanged refuses a lease that a change of more than its name leaves too long.
func (m Limits) CheckChanged(l Lease, c Change) error {
	if c.Rename() {
		return nil
	}
	return m.check(InvalidInput, l.Project, l.EndAt.Sub(l.StartAt))
}

func (m Limits) check(kind Kind, project string, length time.Duration) error {
	if m.Longest <= 0 || length <= m.Longest || slices.Contains(m.Exempt, project) {
		return nil
	}
	return Refuse(kind, "Lease duration of %d seconds must be less than or equal to the maximum lease duration of %d seconds.",
		int64(length/time.Second), int64(m.Longest/time.Second))
}
