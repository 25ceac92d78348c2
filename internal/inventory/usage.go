package inventory

import "time"

// ProviderUsage is how much of each of a provider's inventories is in use.
type ProviderUsage struct {
	Generation int64
	Used       map[string]int64 // by class
}

// ProviderHoldings are the consumers of a provider.
type ProviderHoldings struct {
	Generation int64 // of the provider
	Consumers  map[string]Share
	ChangedAt  time.Time
}

// Share is what one consumer holds of one provider.
type Share struct {
	Generation int64 // of the consumer
	Resources  map[string]int64
}

// UsageFilter says whose consumption is asked for.
type UsageFilter struct {
	Project string
	User    *string
	Type    *string // of the consumers
	Untyped bool    // only consumers without a type
	Unowned bool    // also consumers without a record, as if they belonged to the project and the user
}

// Usage is the consumption of all consumers of one type.
type Usage struct {
	Type      *string // nil for consumers without one
	Used      map[string]int64
	Consumers int64
}

// Total puts usages of all types together.
func Total(usages []Usage) Usage {
	all := Usage{Used: map[string]int64{}}
	for _, u := range usages {
		all.Consumers += u.Consumers
		for class, amount := range u.Used {
			all.Used[class] += amount
		}
	}
	return all
}
