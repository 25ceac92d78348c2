package lease

import (
	"slices"
	"time"
)

// Limits are the operator's settings for leases.
type Limits struct {
	Cleaning time.Duration // how long a host stays unavailable after the end of a lease
	Longest  time.Duration // maximum duration of a lease; 0: unlimited
	Exempt   []string      // projects without a maximum duration
	Lead     time.Duration // default time between the before_end_lease event and the end; 0: no such event
	Shuffled bool          // choose at random among equally suitable hosts
}

// CheckNew returns a fault if a new lease of the project is too long.
func (m Limits) CheckNew(project string, s Schedule) error {
	return m.check(NotAuthorized, project, s.End.Sub(s.Start))
}

// CheckChanged returns a fault if a lease is too long after a change. Changes of the name only are always allowed.
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
