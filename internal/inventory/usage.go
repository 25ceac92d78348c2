package inventory

import "time"

// ProviderUsage is the used amount of each of a provider's inventories.
type ProviderUsage struct {
	Generation int64
	Used       map[string]int64 // by resource class
}

// ProviderAllocations are the allocations of a provider, by consumer UUID.
type ProviderAllocations struct {
	Generation int64 // generation of the provider
	Consumers  map[string]ConsumerResources
	ChangedAt  time.Time
}

// ConsumerResources lists the amount of each resource class that one consumer allocates from one provider.
type ConsumerResources struct {
	Generation int64 // generation of the consumer
	Resources  map[string]int64
}

// UsageFilter selects the consumers of a usage report.
type UsageFilter struct {
	Project string
	User    *string
	Type    *string // consumer type
	Untyped bool    // only consumers without a type
	Unowned bool    // include consumers without project and user
}

// Usage is the total usage of all consumers of one type.
type Usage struct {
	Type      *string // nil: consumers without a type
	Used      map[string]int64
	Consumers int64
}

// TotalUsage adds up the usages of all consumer types.
func TotalUsage(usages []Usage) Usage {
	all := Usage{Used: map[string]int64{}}
	for _, u := range usages {
		all.Consumers += u.Consumers
		for class, amount := range u.Used {
			all.Used[class] += amount
		}
	}
	return all
}
