package inventory

import "time"

// Provider is something that has inventory: a host, a part of one, or something that hosts share.
type Provider struct {
	UUID       string
	Name       string
	Generation int64
	Parent     string // UUID; empty for a root
	Root       string // UUID; its own for a root
	ChangedAt  time.Time
}

// NewProvider is a provider to be created.
type NewProvider struct {
	UUID   string // canonical
	Name   string
	Parent string // UUID; empty for a root
}

// ProviderFilter narrows a listing; nil fields do not.
type ProviderFilter struct {
	Name   *string
	UUID   *string
	InTree *string // UUID of any provider of the tree

	Resources  map[string]int64 // what the provider itself must have room for
	Traits     Rule
	Aggregates Rule
}

// ProviderChange is a new name for a provider and perhaps another place in the trees.
type ProviderChange struct {
	UUID   string
	Name   string
	Parent *string // nil keeps it, empty makes it a root
	Move   bool    // a provider that has a parent may get another one, or none
}

// CheckMove tells whether a provider may get that parent instead of its current one; empty is none.
func CheckMove(current, wanted string, move bool) error {
	switch {
	case move, current == "", current == wanted:
		return nil
	case wanted == "":
		return Refuse(Invalid, "un-parenting a provider is not currently allowed.")
	default:
		return Refuse(Invalid, "re-parenting a provider is not currently allowed.")
	}
}

// Aggregates are the aggregates that a provider belongs to.
type Aggregates struct {
	Generation int64 // of the provider
	UUIDs      []string
}

// Traits are the traits that a provider has.
type Traits struct {
	Generation int64 // of the provider
	Names      []string
	ChangedAt  time.Time
}

// Trait is a trait as such.
type Trait struct {
	Name      string
	ChangedAt time.Time
}

// TraitFilter narrows a listing; nil fields do not.
type TraitFilter struct {
	Names      []string
	Prefix     *string
	Associated *bool // whether some provider has it
}

// Class is a resource class.
type Class struct {
	Name      string
	ChangedAt time.Time
}
