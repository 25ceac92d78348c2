// Package inventory holds the rules of Placement: for resource providers, inventories, traits, aggregates,
// allocations and allocation candidates. All functions of package inventory are pure: they do no I/O and do
// not read the clock.
package inventory

import "time"

// MaxInt is the maximum value of every integer field of an inventory, such as total and max_unit.
const MaxInt = 1<<31 - 1

// Inventory is a provider's inventory of one resource class.
type Inventory struct {
	Total           int64
	Reserved        int64
	MinUnit         int64
	MaxUnit         int64
	StepSize        int64
	AllocationRatio float64
}

// NewInventory returns an inventory with the given total and Placement's defaults.
func NewInventory(total int64) Inventory {
	return Inventory{
		Total:           total,
		MinUnit:         1,
		MaxUnit:         MaxInt,
		StepSize:        1,
		AllocationRatio: 1,
	}
}

// Capacity returns the amount that can be allocated: (total - reserved) * allocation_ratio, not truncated.
func (i Inventory) Capacity() float64 {
	return float64(i.Total-i.Reserved) * i.AllocationRatio
}

// CheckReserved returns Placement's error text if too much of the total is reserved, otherwise an empty
// string. If fullReserve is true (since microversion 1.26), the reserved amount may equal the total.
func (i Inventory) CheckReserved(fullReserve bool) string {
	switch capacity := i.Capacity(); {
	case fullReserve && capacity <= -1:
		return "The reserved value is greater than total."
	case !fullReserve && capacity < 1:
		return "The reserved value is greater than or equal to total."
	}
	return ""
}

// MatchesUnits reports whether an amount respects min_unit, max_unit and step_size.
func (i Inventory) MatchesUnits(amount int64) bool {
	return amount >= i.MinUnit && amount <= i.MaxUnit && amount%i.StepSize == 0
}

// FitsCapacity reports whether the usage may change from `before` to `after`. If the usage before the change
// exceeds the capacity, the usage may stay the same or decrease.
func (i Inventory) FitsCapacity(before, after int64) bool {
	return after <= before || float64(after) <= i.Capacity()
}

// ProviderInventories is the set of all inventories of a provider, by resource class.
type ProviderInventories struct {
	Generation int64 // generation of the provider
	Classes    map[string]Inventory
	ChangedAt  time.Time // zero if there are no inventories
}
