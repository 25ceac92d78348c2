package inventory_test

import (
	"fmt"

	"berth/internal/inventory"
)

// A client sends the consumer generation that it has read. The write is rejected if another writer has changed the generation
// since then.
func Example_consumerGeneration() {
	current := int64(2)
	fmt.Println(inventory.ExpectGeneration(2).Check(&current))
	fmt.Println(inventory.ExpectGeneration(1).Check(&current))
	fmt.Println(inventory.ExpectAbsent().Check(nil))
	// Output:
	// <nil>
	// consumer generation conflict - expected 2 but got 1
	// <nil>
}

// Each of two writes fits the capacity alone, but both together exceed it.
func Example_capacity() {
	key := inventory.InventoryKey{Provider: "cmp-1", Class: "VCPU"}
	capacities := map[inventory.InventoryKey]inventory.Capacity{key: {Inventory: inventory.NewInventory(8)}}
	write := inventory.ConsumerWrite{Allocations: inventory.Allocations{"cmp-1": {"VCPU": 5}}}
	fmt.Println(inventory.CheckCapacity([]inventory.ConsumerWrite{write}, capacities))
	fmt.Println(inventory.CheckCapacity([]inventory.ConsumerWrite{write, write}, capacities) != nil)
	// Output:
	// <nil>
	// true
}
