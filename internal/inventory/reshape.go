package inventory

import (
	"maps"
	"slices"
)

// Reshape moves inventories between providers together with what is allocated of them: in the end the providers
// named have exactly those inventories, and the consumers named hold exactly what their writes say.
type Reshape struct {
	Stocks map[string]Stock // by provider, which must be at the stock's generation
	Writes []ConsumerWrite
}

// Providers lists the UUIDs of the providers that get a stock, sorted.
func (r Reshape) Providers() []string { return slices.Sorted(maps.Keys(r.Stocks)) }

// Asked lists the UUIDs of the providers of the new allocations, sorted.
func (r Reshape) Asked() []string {
	var all []string
	for _, w := range r.Writes {
		all = slices.AppendSeq(all, maps.Keys(w.Allocations))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Classes lists the names of all classes that are mentioned, sorted.
func (r Reshape) Classes() []string {
	var all []string
	for _, s := range r.Stocks {
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
