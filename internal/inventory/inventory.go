// Package inventory holds the rules of resource providers, inventories, traits, aggregates and allocations.
// Value in, value out; it never does I/O and never asks for the time.
package inventory

import "time"

// MaxInt is the largest value of every number of an inventory but its ratio.
const MaxInt = 1<<31 - 1

// Inventory is how much of one resource class a provider has, and in which portions it gives it away.
type Inventory struct {
	Total           int64
	Reserved        int64
	MinUnit         int64
	MaxUnit         int64
	StepSize        int64
	AllocationRatio float64
}

// Of is an inventory of that total with the defaults of everything else.
func Of(total int64) Inventory {
	return Inventory{Total: total, MinUnit: 1, MaxUnit: MaxInt, StepSize: 1, AllocationRatio: 1}
}

// Capacity is how much may be allocated, untruncated.
func (i Inventory) Capacity() float64 {
	return float64(i.Total-i.Reserved) * i.AllocationRatio
}

// Sound tells whether the inventory's reserve leaves enough: something, or with fullReserve at least not less
// than nothing. The answer is empty if it does.
func (i Inventory) Sound(fullReserve bool) string {
	switch capacity := i.Capacity(); {
	case fullReserve && capacity <= -1:
		return "The reserved value is greater than total."
	case !fullReserve && capacity < 1:
		return "The reserved value is greater than or equal to total."
	}
	return ""
}

// Divides tells whether an amount respects the inventory's units.
func (i Inventory) Divides(amount int64) bool {
	return amount >= i.MinUnit && amount <= i.MaxUnit && amount%i.StepSize == 0
}

// Fits tells whether the usage may become after when it was before. Whoever does not add to an
// overcommitted provider may shrink, stay or move away.
func (i Inventory) Fits(before, after int64) bool {
	return after <= before || float64(after) <= i.Capacity()
}

// Stock is a provider's inventory of every class that it has.
type Stock struct {
	Generation int64 // of the provider
	Classes    map[string]Inventory
	ChangedAt  time.Time // zero if there is no class
}
