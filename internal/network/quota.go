package network

// Resources with a quota.
const (
	Networks       = "network"
	Subnets        = "subnet"
	Ports          = "port"
	SecurityGroups = "security_group"
	SecurityRules  = "security_group_rule"
	Trunks         = "trunk"
)

// Limited returns the resources with a quota, in the order of the API.
func Limited() []string {
	return []string{Networks, Subnets, Ports, SecurityGroups, SecurityRules, Trunks}
}

// Unlimited is the limit that means no limit.
const Unlimited = -1

// Quota maps a resource to its limit for a project. A missing resource is unlimited.
type Quota map[string]int64

// Of returns the limit of a resource.
func (q Quota) Of(resource string) int64 {
	if limit, ok := q[resource]; ok {
		return limit
	}
	return Unlimited
}

// OverQuota returns the fault for a request that exceeds the quota of a resource.
func OverQuota(resource string) *Fault {
	return Faultf(QuotaExceeded, "Quota exceeded for resources: ['%s'].", resource)
}

// Cover returns a fault if a limit is below the current usage of its resource.
func (q Quota) Cover(used map[string]int64) error {
	for _, resource := range Limited() {
		if limit := q.Of(resource); limit != Unlimited && limit < used[resource] {
			return Faultf(QuotaTooLow, "Quota limit %d for %s must be greater than or equal to already used %d", limit, resource, used[resource])
		}
	}
	return nil
}
