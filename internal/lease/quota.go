package lease

import "slices"

// Resources with a quota.
const (
	QuotaLeases               = "lease"       // leases of a project that have not ended
	QuotaReservations         = "reservation" // reservations of these leases
	QuotaReservationsPerLease = "reservation_per_lease"
)

// QuotaResources returns the resources with a quota.
func QuotaResources() []string {
	return []string{QuotaLeases, QuotaReservations, QuotaReservationsPerLease}
}

// Quota limits what each project may have at the same time.
type Quota struct {
	// by resource; a resource that is missing or has a negative limit is unlimited
	Limits         map[string]int64
	ExemptProjects []string // projects without a quota
}

// QuotaUsage counts the leases of a project that have not ended, and the reservations of these leases.
type QuotaUsage struct {
	Leases, Reservations int64
}

// NeedsUsage reports whether the quota limits what all leases of the project have together.
func (q Quota) NeedsUsage(project string) bool {
	return q.limits(project, QuotaLeases) || q.limits(project, QuotaReservations)
}

func (q Quota) limits(project, resource string) bool {
	limit, ok := q.Limits[resource]
	return ok && limit >= 0 && !slices.Contains(q.ExemptProjects, project)
}

// CheckDraft returns a fault if the quota does not allow a project that has `used` to create a lease.
func (q Quota) CheckDraft(d Draft, used QuotaUsage) error {
	size := int64(len(d.Reservations))
	for _, of := range []struct {
		resource string
		count    int64
		noun     string
	}{
		{QuotaReservationsPerLease, size, "reservations of one lease"},
		{QuotaLeases, used.Leases + 1, "leases of the project that have not ended"},
		{QuotaReservations, used.Reservations + size, "reservations of the leases of the project that have not ended"},
	} {
		if limit := q.Limits[of.resource]; of.count > limit && q.limits(d.Project, of.resource) {
			return Faultf(QuotaExceeded, "Quota exceeded for %s: the limit is %d.", of.noun, limit)
		}
	}
	return nil
}
