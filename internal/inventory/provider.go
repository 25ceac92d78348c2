package inventory

import "time"

// Provider is a resource provider.
type Provider struct {
	UUID       string
	Name       string
	Generation int64
	Parent     string // UUID; empty: root
	Root       string // UUID of the root of its tree; its own UUID for a root
	ChangedAt  time.Time
}

// ProviderDraft is a request to create a provider.
type ProviderDraft struct {
	UUID   string // canonical UUID
	Name   string
	Parent string // UUID; empty: root
}

// ProviderFilter filters a list of providers; nil fields match everything.
type ProviderFilter struct {
	Name   *string
	UUID   *string
	InTree *string // UUID of any provider of the tree

	Resources  map[string]int64 // amounts that the provider itself must have available
	Traits     Rule
	Aggregates Rule
}

// ProviderChange is an update of a provider.
type ProviderChange struct {
	UUID   string
	Name   string
	Parent *string // nil: unchanged; empty: becomes a root
	Move   bool    // a provider with a parent may get another parent, or none (microversion 1.37)
}

// CheckMove returns a fault if the request must not change the provider's parent from the UUID `current` to
// the UUID `wanted`. An empty UUID stands for no parent.
func CheckMove(current, wanted string, move bool) error {
	switch {
	case move, current == "", current == wanted:
		return nil
	case wanted == "":
		return Faultf(Invalid, "un-parenting a provider is not currently allowed.")
	default:
		return Faultf(Invalid, "re-parenting a provider is not currently allowed.")
	}
}

// Aggregates are the aggregates of a provider, and the generation that the provider had when they were read.
type Aggregates struct {
	Generation int64 // generation of the provider
	UUIDs      []string
}

// Traits are the traits of a provider.
type Traits struct {
	Generation int64 // generation of the provider
	Names      []string
	ChangedAt  time.Time
}

// Trait is a trait that providers can have.
type Trait struct {
	Name      string
	ChangedAt time.Time
}

// TraitFilter filters a list of traits; nil fields match everything.
type TraitFilter struct {
	Names      []string
	Prefix     *string
	Associated *bool // true: used by a provider
}

// ResourceClass is a resource class of inventories.
type ResourceClass struct {
	Name      string
	ChangedAt time.Time
}
