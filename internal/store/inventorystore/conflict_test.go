package inventorystore_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

func TestConflicts_CountRefusedWritesByProvider(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	busy := storetest.AddHost(t, s, "busy", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)})
	calm := storetest.AddHost(t, s, "calm", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)})
	old, consumer := int64(77), uuid.NewString()
	if _, err := s.Inventory.SetAggregates(t.Context(), calm, nil, &old); err == nil {
		t.Fatal("an old generation of a provider: got no error")
	}
	if _, err := s.Inventory.SetProviderTraits(t.Context(), busy, old, nil); err == nil {
		t.Fatal("an old generation of a provider: got no error")
	}
	storetest.Allocate(t, s, storetest.VCPUs(consumer, calm, 1, inventory.ExpectAbsent()))
	for range 2 {
		if err := s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(consumer, busy, 1, inventory.ExpectAbsent())); err == nil {
			t.Fatal("an old generation of a consumer: got no error")
		}
	}
	if err := s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), calm, 1000, inventory.ExpectAbsent())); err == nil {
		t.Fatal("more than the capacity: got no error")
	}
	found, err := s.Inventory.Conflicts(t.Context(), 10)
	if err != nil || len(found) != 2 {
		t.Fatalf("conflicts: got %+v, error %v, want those of two providers", found, err)
	}
	if c := found[0]; c.Provider != busy || c.Name != "busy" || c.Count != 3 ||
		c.Cause != inventory.CauseAllocations {
		t.Errorf(
			"the provider with the most conflicts: got %+v, want busy with 3, the last of allocations",
			c,
		)
	}
	if c := found[1]; c.Provider != calm || c.Count != 1 || c.Cause != inventory.CauseAggregates {
		t.Errorf(
			"the other provider: got %+v, want calm with 1 of aggregates; a write beyond the capacity is no conflict",
			c,
		)
	}
	conflict := inventory.Faultf(inventory.ConcurrentUpdate, "conflict")
	for i := range 1200 {
		inventorystore.RecordConflict(s.Inventory, conflict, inventory.CauseTraits, fmt.Sprint(i))
	}
	if found, err = s.Inventory.Conflicts(t.Context(), 5000); err != nil || len(found) != 1000 ||
		found[0].Count != 1 {
		t.Errorf(
			"conflicts of more providers than a process counts: got %d, error %v, want the newest 1000",
			len(found),
			err,
		)
	}
}
