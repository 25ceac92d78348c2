package inventory_test

import (
	"fmt"

	"berth/internal/inventory"
)

// In the example, a client sends the consumer generation that the client has read before. Check rejects a
// write if another writer has changed the consumer's generation since the client read the generation.
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

// In the example, each of two writes fits the capacity of the inventory, but both writes together exceed the
// capacity.
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
