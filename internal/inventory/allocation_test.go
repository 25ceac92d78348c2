package inventory_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/inventory"
)

func TestExpectation_ChecksTheConsumerGeneration(t *testing.T) {
	t.Parallel()
	one, two := int64(1), int64(2)
	for name, tc := range map[string]struct {
		expect  inventory.Expectation
		current *int64
		want    string
	}{
		"any, absent":       {inventory.Expectation{}, nil, ""},
		"any, exists":       {inventory.Expectation{}, &one, ""},
		"absent, absent":    {inventory.ExpectAbsent(), nil, ""},
		"absent, exists":    {inventory.ExpectAbsent(), &one, "consumer generation conflict - expected 1 but got None"},
		"at 1, at 1":        {inventory.ExpectGeneration(1), &one, ""},
		"at 1, at 2":        {inventory.ExpectGeneration(1), &two, "consumer generation conflict - expected 2 but got 1"},
		"at 1, absent":      {inventory.ExpectGeneration(1), nil, "consumer generation conflict - expected null but got 1"},
		"at 0, absent":      {inventory.ExpectGeneration(0), nil, "consumer generation conflict - expected null but got 0"},
		"at maximum, at 1":  {inventory.ExpectGeneration(math.MaxInt64), &one, "consumer generation conflict - expected 1 but got 9223372036854775807"},
		"not given, absent": {inventory.ConsumerWrite{}.Expect, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := tc.expect.Check(tc.current); err != nil {
				var p *inventory.Fault
				if !errors.As(err, &p) || p.Kind != inventory.ConcurrentUpdate {
					t.Errorf(
						"check of the consumer generation: got error %v, want a fault of kind ConcurrentUpdate",
						err,
					)
				}
				got = err.Error()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("error text of the check of the consumer generation (-want +got):\n%s", d)
			}
		})
	}
}

func TestCheckCapacity_CountsAllWritesTogether(t *testing.T) {
	t.Parallel()
	key := inventory.InventoryKey{Provider: "p", Class: "VCPU"}
	writesOf := func(amounts ...int64) []inventory.ConsumerWrite {
		var writes []inventory.ConsumerWrite
		for _, n := range amounts {
			writes = append(writes,
				inventory.ConsumerWrite{Allocations: inventory.Allocations{"p": {"VCPU": n}}})
		}
		return writes
	}
	// the capacity is 5.5
	fractional := inventoryWith(func(i *inventory.Inventory) { i.AllocationRatio = 0.55 })
	for name, tc := range map[string]struct {
		capacity inventory.Capacity
		writes   []inventory.ConsumerWrite
		ok       bool
	}{
		"all capacity":                        {inventory.Capacity{Inventory: inventory.NewInventory(10)}, writesOf(10), true},
		"one too many":                        {inventory.Capacity{Inventory: inventory.NewInventory(10)}, writesOf(11), false},
		"two writes that fit":                 {inventory.Capacity{Inventory: inventory.NewInventory(10)}, writesOf(5, 5), true},
		"two writes that fit only separately": {inventory.Capacity{Inventory: inventory.NewInventory(10)}, writesOf(6, 6), false},
		"other consumers use the rest":        {inventory.Capacity{Inventory: inventory.NewInventory(10), UsedBefore: 5, UsedByOthers: 5}, writesOf(6), false},
		"fractional capacity is truncated":    {inventory.Capacity{Inventory: fractional}, writesOf(6), false},
		"integer part of the capacity":        {inventory.Capacity{Inventory: fractional}, writesOf(5), true},
		"overcommitted, decreases":            {inventory.Capacity{Inventory: inventory.NewInventory(10), UsedBefore: 30, UsedByOthers: 15}, writesOf(10), true},
		"overcommitted, unchanged":            {inventory.Capacity{Inventory: inventory.NewInventory(100), UsedBefore: 300, UsedByOthers: 250}, writesOf(50), true},
		"overcommitted, increases":            {inventory.Capacity{Inventory: inventory.NewInventory(100), UsedBefore: 300, UsedByOthers: 250}, writesOf(51), false},
		"maximum integer":                     {inventory.Capacity{Inventory: inventory.NewInventory(10)}, writesOf(math.MaxInt64), false},
		"sum exceeds the maximum integer":     {inventory.Capacity{Inventory: inventory.NewInventory(10)}, writesOf(5, math.MaxInt64), false},
		"less than min_unit":                  {inventory.Capacity{Inventory: inventoryWith(func(i *inventory.Inventory) { i.MinUnit = 3 })}, writesOf(2), false},
		"more than max_unit":                  {inventory.Capacity{Inventory: inventoryWith(func(i *inventory.Inventory) { i.MaxUnit = 3 })}, writesOf(4), false},
		"no multiple of step_size":            {inventory.Capacity{Inventory: inventoryWith(func(i *inventory.Inventory) { i.StepSize = 2 })}, writesOf(3), false},
		"reserved units are not available":    {inventory.Capacity{Inventory: inventoryWith(func(i *inventory.Inventory) { i.Reserved = 4 })}, writesOf(7), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := inventory.CheckCapacity(tc.writes,
				map[inventory.InventoryKey]inventory.Capacity{key: tc.capacity})
			var p *inventory.Fault
			if (err == nil) != tc.ok || err != nil && (!errors.As(err, &p) || p.Kind != inventory.Conflict) {
				t.Errorf(
					"CheckCapacity: got error %v; want success: %t, and in case of failure a fault of kind Conflict",
					err,
					tc.ok,
				)
			}
		})
	}
	if err := inventory.CheckCapacity(writesOf(1), nil); err == nil {
		t.Error("check of a write to a missing inventory: got no error, want a fault")
	}
}
