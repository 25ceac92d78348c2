package inventory

import (
	"maps"
	"slices"
)

// Reshape replaces the inventories of providers and the allocations of consumers in one transaction (POST
// /reshaper).
type Reshape struct {
	// by provider UUID; each with the expected generation of the provider
	Inventories map[string]ProviderInventories
	Writes      []ConsumerWrite
}

// InventoryProviders returns the UUIDs of the providers whose inventories are replaced, sorted.
func (r Reshape) InventoryProviders() []string { return slices.Sorted(maps.Keys(r.Inventories)) }

// AllocationProviders returns the UUIDs of the providers in the new allocations, sorted.
func (r Reshape) AllocationProviders() []string {
	var all []string
	for _, w := range r.Writes {
		all = slices.AppendSeq(all, maps.Keys(w.Allocations))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Classes returns the names of all resource classes in the reshape request, sorted.
func (r Reshape) Classes() []string {
	var all []string
	for _, s := range r.Inventories {
		all = slices.AppendSeq(all, maps.Keys(s.Classes))
	}
	for _, w := range r.Writes {
		for _, resources := range w.Allocations {
			all = slices.AppendSeq(all, maps.Keys(resources))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
