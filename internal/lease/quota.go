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
	return q.Limit(project, QuotaLeases) != nil || q.Limit(project, QuotaReservations) != nil
}

// Limit returns the limit of a resource of the project; nil: there is no limit.
func (q Quota) Limit(project, resource string) *int64 {
	limit, ok := q.Limits[resource]
	if !ok || limit < 0 || slices.Contains(q.ExemptProjects, project) {
		return nil
	}
	return &limit
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
		if limit := q.Limit(d.Project, of.resource); limit != nil && of.count > *limit {
			return Faultf(QuotaExceeded, "Quota exceeded for %s: the limit is %d.", of.noun, *limit)
		}
	}
	return nil
}
