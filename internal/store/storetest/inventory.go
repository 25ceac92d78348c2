package storetest

import (
	"testing"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
)

// AddProvider creates a provider with inventories.
func AddProvider(
	t testing.TB,
	s *store.Store,
	p inventory.ProviderDraft,
	inventories map[string]inventory.Inventory,
) {
	t.Helper()
	err := s.DB.InTx(t.Context(), func(tx db.Tx) error {
		if err := inventorystore.AddProvider(t.Context(), tx, p); err != nil {
			return err
		}
		for class, i := range inventories {
			if err := inventorystore.EnsureClass(t.Context(), tx, class); err != nil {
				return err
			}
			if err := inventorystore.SetInventory(t.Context(), tx, p.UUID, class, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// AddHost creates a provider with the given name and inventories, and returns the UUID of the provider.
func AddHost(t testing.TB, s *store.Store, name string, inventories map[string]inventory.Inventory) string {
	t.Helper()
	p := inventory.ProviderDraft{UUID: uuid.NewString(), Name: name}
	AddProvider(t, s, p, inventories)
	return p.UUID
}

// Allocations returns a consumer with its allocations.
func Allocations(t testing.TB, s *store.Store, consumer string) inventory.ConsumerAllocations {
	t.Helper()
	h, err := s.Inventory.Allocations(t.Context(), consumer)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Allocate writes allocations and fails the test if the write fails.
func Allocate(t testing.TB, s *store.Store, w inventory.ConsumerWrite) {
	t.Helper()
	if err := s.Inventory.PutAllocations(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// VCPUs returns a write that replaces the allocations of a consumer by the given number of VCPUs of one
// provider.
func VCPUs(consumer, provider string, amount int64, expect inventory.Expectation) inventory.ConsumerWrite {
	return inventory.ConsumerWrite{
		Consumer:    consumer,
		Project:     "p",
		User:        "u",
		Expect:      expect,
		Allocations: inventory.Allocations{provider: {"VCPU": amount}},
	}
}

// NoAllocations returns a write that removes all allocations of a consumer.
func NoAllocations(consumer string, expect inventory.Expectation) inventory.ConsumerWrite {
	return inventory.ConsumerWrite{
		Consumer: consumer,
		Project:  "p",
		User:     "u",
		Expect:   expect,
	}
}

// CountWrongUsage is a SQL query that counts the inventories whose usage is not the sum of the allocations
// from them.
const CountWrongUsage = `
	select count(*)
	from inventory i
	where used <> coalesce((select sum(amount) from allocation where provider_id = i.provider_id and class_id = i.class_id), 0)`
