package lease

import (
	"slices"
	"time"
)

// Limits are the operator's settings for leases.
type Limits struct {
	CleaningTime   time.Duration // how long a host stays unavailable after the end of a lease
	MaxDuration    time.Duration // maximum duration of a lease; 0: unlimited
	ExemptProjects []string      // projects without a maximum duration
	// default time between the before_end_lease event and the end; 0: no such event
	BeforeEndLead time.Duration
	RandomHosts   bool // choose at random among equally suitable hosts
}

// CheckNew returns a fault if a new lease of the project lasts longer than the maximum duration.
func (m Limits) CheckNew(project string, s Schedule) error {
	return m.check(NotAuthorized, project, s.End.Sub(s.Start))
}

// CheckChanged returns a fault if the changed lease lasts longer than the maximum duration. CheckChanged
// always allows a change that changes only the name of the lease.
func (m Limits) CheckChanged(l Lease, c Change) error {
	if c.OnlyRenames() {
		return nil
	}
	return m.check(InvalidInput, l.Project, l.EndAt.Sub(l.StartAt))
}

func (m Limits) check(kind Kind, project string, length time.Duration) error {
	if m.MaxDuration <= 0 || length <= m.MaxDuration || slices.Contains(m.ExemptProjects, project) {
		return nil
	}
	return Faultf(kind,
		"Lease duration of %d seconds must be less than or equal to the maximum lease duration of %d seconds.",
		int64(length/time.Second), int64(m.MaxDuration/time.Second))
}
