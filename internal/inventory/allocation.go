package inventory

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"
)

// Allocations maps each provider UUID to the amounts that are allocated from the provider, by resource class.
type Allocations map[string]map[string]int64

// Providers returns the UUIDs of the providers, sorted.
func (a Allocations) Providers() []string { return slices.Sorted(maps.Keys(a)) }

// Expectation is the consumer_generation that a write expects: any, null (the consumer must not exist), or a
// number. The zero value of Expectation accepts any generation; internal writers and microversions without
// consumer_generation use the zero value.
type Expectation struct {
	isSet      bool
	generation *int64
}

// ExpectAbsent returns the expectation that the consumer does not exist.
func ExpectAbsent() Expectation { return Expectation{isSet: true} }

// ExpectGeneration returns the expectation that the consumer exists with the given generation.
func ExpectGeneration(generation int64) Expectation {
	return Expectation{isSet: true, generation: &generation}
}

// AcceptsAny reports whether the expectation accepts every state of the consumer.
func (e Expectation) AcceptsAny() bool { return !e.isSet }

// ExpectsAbsent reports whether the expectation is that the consumer does not exist.
func (e Expectation) ExpectsAbsent() bool { return e.isSet && e.generation == nil }

// Generation returns the expected generation, or nil if no generation is expected.
func (e Expectation) Generation() *int64 { return e.generation }

// Check compares the expectation with `current`, the consumer's generation (nil if the consumer does not
// exist). If the expected generation differs from `current`, Check returns a fault of kind ConcurrentUpdate.
// The texts of the faults that Check returns are the error texts of Placement.
func (e Expectation) Check(current *int64) error {
	switch {
	case !e.isSet,
		e.generation == nil && current == nil,
		e.generation != nil && current != nil && *e.generation == *current:
		return nil
	case current == nil:
		return Faultf(ConcurrentUpdate, "consumer generation conflict - expected null but got %d",
			*e.generation)
	case e.generation == nil:
		return Faultf(ConcurrentUpdate, "consumer generation conflict - expected %d but got None", *current)
	default:
		return Faultf(ConcurrentUpdate, "consumer generation conflict - expected %d but got %d",
			*current, *e.generation)
	}
}

// Owner is the project and the user of a consumer.
type Owner struct{ Project, User string }

// ConsumerWrite replaces all allocations of a consumer. A ConsumerWrite without allocations deletes the
// consumer.
type ConsumerWrite struct {
	Consumer    string // canonical UUID
	Project     string
	User        string
	Type        *string // nil: unchanged
	Expect      Expectation
	Allocations Allocations
	// the allocations in the order in which the client has written them; nil: sorted
	Order []InventoryKey
}

// CheckGeneration compares the expectation with `current`, as Expectation.Check does. The fault names the
// consumer.
func (w ConsumerWrite) CheckGeneration(current *int64) error {
	err := w.Expect.Check(current)
	var fault *Fault
	if errors.As(err, &fault) {
		return fault.About(ConsumerObject, w.Consumer)
	}
	return err
}

// Keys returns the inventories of the allocations in the order of the write.
func (w ConsumerWrite) Keys() []InventoryKey {
	if w.Order != nil {
		return w.Order
	}
	var keys []InventoryKey
	for _, provider := range w.Allocations.Providers() {
		for _, class := range slices.Sorted(maps.Keys(w.Allocations[provider])) {
			keys = append(keys, InventoryKey{provider, class})
		}
	}
	return keys
}

// ConsumerAllocations holds a consumer and the consumer's allocations. The zero value of ConsumerAllocations
// means that the consumer does not exist. If a consumer has allocations but no record in the database,
// Project and User are empty.
type ConsumerAllocations struct {
	Project             string
	User                string
	Type                *string
	Generation          int64
	Allocations         Allocations
	Order               []InventoryKey   // the allocations in the order in which they were written
	ProviderGenerations map[string]int64 // generations of the providers
	ChangedAt           time.Time
}

// InventoryKey identifies one inventory.
type InventoryKey struct{ Provider, Class string }

// Capacity is an inventory with the usage that is needed to check a write.
type Capacity struct {
	Inventory    Inventory
	UsedBefore   int64 // usage before the write
	UsedByOthers int64 // usage of consumers that the write does not replace
}

// CheckCapacity returns a fault if all writes together exceed the capacity of an inventory, or if an
// allocation of one write violates the inventory's min_unit, max_unit or step_size. Before calling
// CheckCapacity, the caller must have checked that all resource classes of the writes exist.
func CheckCapacity(writes []ConsumerWrite, capacities map[InventoryKey]Capacity) error {
	after := map[InventoryKey]int64{}
	for _, w := range writes {
		for _, provider := range w.Allocations.Providers() {
			for _, class := range slices.Sorted(maps.Keys(w.Allocations[provider])) {
				key := InventoryKey{provider, class}
				if err := checkAmount(key, w.Allocations[provider][class], after, capacities); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkAmount(
	key InventoryKey,
	amount int64,
	after map[InventoryKey]int64,
	capacities map[InventoryKey]Capacity,
) error {
	capacity, ok := capacities[key]
	if !ok {
		return Faultf(Conflict,
			"Unable to allocate inventory: Inventory for '%s' on resource provider '%s' invalid.",
			key.Class, key.Provider)
	}
	if !capacity.Inventory.MatchesUnits(amount) {
		return Faultf(
			Conflict,
			"Unable to allocate inventory: Unable to create allocation for '%s' on resource provider '%s'. "+
				"The requested amount would violate inventory constraints.",
			key.Class,
			key.Provider,
		)
	}
	if _, begun := after[key]; !begun {
		after[key] = capacity.UsedByOthers
	}
	if amount > math.MaxInt64-after[key] {
		amount = math.MaxInt64 - after[key]
	}
	after[key] += amount
	if !capacity.Inventory.FitsCapacity(capacity.UsedBefore, after[key]) {
		return Faultf(
			Conflict,
			"Unable to allocate inventory: Unable to create allocation for '%s' on resource provider '%s'. "+
				"The requested amount would exceed the capacity.",
			key.Class,
			key.Provider,
		)
	}
	return nil
}
