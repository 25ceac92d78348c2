package inventory

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Allocations are amounts by resource class by provider UUID.
type Allocations map[string]map[string]int64

// Providers lists the UUIDs of the providers, sorted.
func (a Allocations) Providers() []string { return slices.Sorted(maps.Keys(a)) }

// Expectation is what a writer knows about the consumer that it writes: nothing, that it does not exist, or its
// generation. The zero value expects nothing and is for writers that are not asked.
type Expectation struct {
	given bool
	at    *int64
}

// Absent expects that the consumer does not exist.
func Absent() Expectation { return Expectation{given: true} }

// At expects the consumer to exist at that generation.
func At(generation int64) Expectation { return Expectation{given: true, at: &generation} }

// Anything tells whether every consumer, existing or not, is as expected.
func (e Expectation) Anything() bool { return !e.given }

// Nothing tells whether the consumer should not exist.
func (e Expectation) Nothing() bool { return e.given && e.at == nil }

// Generation is the expected generation, nil if the consumer should not exist (or nothing is expected).
func (e Expectation) Generation() *int64 { return e.at }

// Check compares with the consumer's generation, nil for none.
func (e Expectation) Check(current *int64) error {
	switch {
	case !e.given, e.at == nil && current == nil, e.at != nil && current != nil && *e.at == *current:
		return nil
	case current == nil:
		return Refuse(Concurrent, "consumer generation conflict - expected null but got %d", *e.at)
	case e.at == nil:
		return Refuse(Concurrent, "consumer generation conflict - expected %d but got None", *current)
	default:
		return Refuse(Concurrent, "consumer generation conflict - expected %d but got %d", *current, *e.at)
	}
}

// Owner is to whom a consumer belongs.
type Owner struct{ Project, User string }

// ConsumerWrite replaces all that a consumer holds. Without allocations the consumer disappears.
type ConsumerWrite struct {
	Consumer    string // its UUID, as it is stored
	Project     string
	User        string
	Type        *string // nil leaves it as it is
	Expect      Expectation
	Allocations Allocations
}

// Holding is what a consumer holds and who it is. A consumer that holds nothing does not exist: the zero
// Holding. One without a record, of which nothing is known but what it holds, has no project and user.
type Holding struct {
	Project     string
	User        string
	Type        *string
	Generation  int64
	Allocations Allocations
	Providers   map[string]int64 // the generations of the providers
	ChangedAt   time.Time
}

// Key names one inventory.
type Key struct{ Provider, Class string }

// Shelf is an inventory with what others take from it and what was taken before the write that is judged.
type Shelf struct {
	Inventory Inventory
	Before    int64 // in use before the write
	Others    int64 // in use by consumers that the write does not touch
}

// Admit judges writes against the shelves they take from. Missing classes are the caller's to tell apart from
// classes that do not exist, before.
func Admit(writes []ConsumerWrite, shelves map[Key]Shelf) error {
	after := map[Key]int64{}
	for _, w := range writes {
		for _, provider := range w.Allocations.Providers() {
			for _, class := range slices.Sorted(maps.Keys(w.Allocations[provider])) {
				key := Key{provider, class}
				if err := admit(key, w.Allocations[provider][class], after, shelves); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func admit(key Key, amount int64, after map[Key]int64, shelves map[Key]Shelf) error {
	shelf, ok := shelves[key]
	if !ok {
		return Refuse(Refused, "Unable to allocate inventory: Inventory for '%s' on resource provider '%s' invalid.",
			key.Class, key.Provider)
	}
	if !shelf.Inventory.Divides(amount) {
		return Refuse(Refused, "Unable to allocate inventory: Unable to create allocation for '%s' on resource provider '%s'. "+
			"The requested amount would violate inventory constraints.", key.Class, key.Provider)
	}
	if _, begun := after[key]; !begun {
		after[key] = shelf.Others
	}
	if amount > math.MaxInt64-after[key] {
		amount = math.MaxInt64 - after[key]
	}
	after[key] += amount
	if !shelf.Inventory.Fits(shelf.Before, after[key]) {
		return Refuse(Refused, "Unable to allocate inventory: Unable to create allocation for '%s' on resource provider '%s'. "+
			"The requested amount would exceed the capacity.", key.Class, key.Provider)
	}
	return nil
}
