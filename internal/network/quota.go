package network

// The resources of which a project may have so many.
const (
	Networks       = "network"
	Subnets        = "subnet"
	Ports          = "port"
	SecurityGroups = "security_group"
	SecurityRules  = "security_group_rule"
	Trunks         = "trunk"
)

// Limited are the resources of which a project may have so many, in the order in which they are told.
func Limited() []string {
	return []string{Networks, Subnets, Ports, SecurityGroups, SecurityRules, Trunks}
}

// Unlimited is the limit of what a project may have any number of.
const Unlimited = -1

// Quota is how many of each resource a project may have. What it does not name is unlimited.
type Quota map[string]int64

// Of is how many of the resource there may be.
func (q Quota) Of(resource string) int64 {
	if limit, ok := q[resource]; ok {
		return limit
	}
	return Unlimited
}

// OverQuota is the fault of asking for more of a resource than there may be.
func OverQuota(resource string) *Fault {
	return Faultf(QuotaExceeded, "Quota exceeded for resources: ['%s'].", resource)
}

// Cover tells whether a project with that much of each resource is within these limits.
func (q Quota) Cover(used map[string]int64) error {
	for _, resource := range Limited() {
		if limit := q.Of(resource); limit != Unlimited && limit < used[resource] {
			return Faultf(QuotaTooLow, "Quota limit %d for %s must be greater than or equal to already used %d", limit, resource, used[resource])
		}
	}
	return nil
}
