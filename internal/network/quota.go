package network

// Resources with a quota.
const (
	QuotaNetworks       = "network"
	QuotaSubnets        = "subnet"
	QuotaPorts          = "port"
	QuotaSecurityGroups = "security_group"
	QuotaSecurityRules  = "security_group_rule"
	QuotaTrunks         = "trunk"
)

// QuotaResources returns the resources with a quota, in the order of the API.
func QuotaResources() []string {
	return []string{
		QuotaNetworks,
		QuotaSubnets,
		QuotaPorts,
		QuotaSecurityGroups,
		QuotaSecurityRules,
		QuotaTrunks,
	}
}

// Unlimited is the value of a limit that allows any number.
const Unlimited = -1

// Quota maps the name of a resource to the maximum number of objects of this resource in a project. A
// resource that is missing from a Quota is unlimited.
type Quota map[string]int64

// Limit returns the limit of a resource.
func (q Quota) Limit(resource string) int64 {
	if limit, ok := q[resource]; ok {
		return limit
	}
	return Unlimited
}

// OverQuota returns the fault for a request that exceeds the quota of a resource.
func OverQuota(resource string) *Fault {
	return Faultf(QuotaExceeded, "Quota exceeded for resources: ['%s'].", resource)
}

// CheckUsage returns a fault if the limit of a resource is below the project's current usage of that
// resource.
func (q Quota) CheckUsage(used map[string]int64) error {
	for _, resource := range QuotaResources() {
		if limit := q.Limit(resource); limit != Unlimited && limit < used[resource] {
			return Faultf(
				QuotaTooLow, "Quota limit %d for %s must be greater than or equal to already used %d",
				limit, resource, used[resource],
			)
		}
	}
	return nil
}

// WithDefaults returns the limits of a project that sets the limits `own`: the limits in q apply to the other
// resources.
func (q Quota) WithDefaults(own Quota) Quota {
	all := Quota{}
	for _, resource := range QuotaResources() {
		all[resource] = q.Limit(resource)
		if limit, ok := own[resource]; ok {
			all[resource] = limit
		}
	}
	return all
}
