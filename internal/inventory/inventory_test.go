package inventory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/inventory"
)

func inventoryWith(change func(*inventory.Inventory)) inventory.Inventory {
	i := inventory.NewInventory(10)
	change(&i)
	return i
}

func TestInventory_ReservedMustLeaveCapacity(t *testing.T) {
	t.Parallel()
	const greaterOrEqual, greater = "The reserved value is greater than or equal to total.", "The reserved value is greater than total."
	for name, tc := range map[string]struct {
		i           inventory.Inventory
		strict, lax string
	}{
		"nothing reserved": {inventory.NewInventory(1), "", ""},
		"all reserved":     {inventoryWith(func(i *inventory.Inventory) { i.Reserved = 10 }), greaterOrEqual, ""},
		"more than all":    {inventoryWith(func(i *inventory.Inventory) { i.Reserved = 11 }), greaterOrEqual, greater},
		"a small ratio":    {inventoryWith(func(i *inventory.Inventory) { i.AllocationRatio = 0.05 }), greaterOrEqual, ""},
		"an odd ratio":     {inventoryWith(func(i *inventory.Inventory) { i.AllocationRatio = 0.1 }), "", ""},
		"a negative ratio": {inventoryWith(func(i *inventory.Inventory) { i.AllocationRatio = -1 }), greaterOrEqual, greater},
		"truncated to 0":   {inventoryWith(func(i *inventory.Inventory) { i.AllocationRatio = -0.05 }), greaterOrEqual, ""},
		"an endless ratio": {inventoryWith(func(i *inventory.Inventory) { i.AllocationRatio = 3.4e38 }), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff([2]string{tc.strict, tc.lax}, [2]string{tc.i.CheckReserved(false), tc.i.CheckReserved(true)}); d != "" {
				t.Errorf("error texts of CheckReserved(false) and CheckReserved(true) (-want +got):\n%s", d)
			}
		})
	}
}
