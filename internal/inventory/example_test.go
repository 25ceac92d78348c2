package inventory_test

import (
	"fmt"

	"berth/internal/inventory"
)

// A client sends the generation of the consumer that it has read. The write is rejected if another writer was faster.
func Example_consumerGeneration() {
	current := int64(2)
	fmt.Println(inventory.At(2).Check(&current))
	fmt.Println(inventory.At(1).Check(&current))
	fmt.Println(inventory.Absent().Check(nil))
	// Output:
	// <nil>
	// consumer generation conflict - expected 2 but got 1
	// <nil>
}

// Two writes that fit separately exceed the capacity together.
func Example_capacity() {
	key := inventory.Key{Provider: "cmp-1", Class: "VCPU"}
	capacities := map[inventory.Key]inventory.Shelf{key: {Inventory: inventory.Of(8)}}
	write := inventory.ConsumerWrite{Allocations: inventory.Allocations{"cmp-1": {"VCPU": 5}}}
	fmt.Println(inventory.Admit([]inventory.ConsumerWrite{write}, capacities))
	fmt.Println(inventory.Admit([]inventory.ConsumerWrite{write, write}, capacities) != nil)
	// Output:
	// <nil>
	// true
}
