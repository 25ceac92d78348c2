package storetest

import (
	"testing"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
)

// AddProvider creates a provider with inventories, as a lease does for its hosts: at generation 0.
func AddProvider(t testing.TB, s *store.Store, p inventory.ProviderDraft, inventories map[string]inventory.Inventory) {
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

// AddHost is AddProvider for a new provider with that name; it returns its UUID.
func AddHost(t testing.TB, s *store.Store, name string, inventories map[string]inventory.Inventory) string {
	t.Helper()
	p := inventory.ProviderDraft{UUID: uuid.NewString(), Name: name}
	AddProvider(t, s, p, inventories)
	return p.UUID
}

// Allocations reads what a consumer holds.
func Allocations(t testing.TB, s *store.Store, consumer string) inventory.ConsumerAllocations {
	t.Helper()
	h, err := s.Inventory.Allocations(t.Context(), consumer)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Allocate writes allocations, which must succeed.
func Allocate(t testing.TB, s *store.Store, w inventory.ConsumerWrite) {
	t.Helper()
	if err := s.Inventory.PutAllocations(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// VCPUs is a write that gives a consumer that many VCPUs of one provider and nothing else.
func VCPUs(consumer, provider string, amount int64, expect inventory.Expectation) inventory.ConsumerWrite {
	return inventory.ConsumerWrite{Consumer: consumer, Project: "p", User: "u", Expect: expect,
		Allocations: inventory.Allocations{provider: {"VCPU": amount}}}
}

// NoAllocations is a write that leaves a consumer with nothing.
func NoAllocations(consumer string, expect inventory.Expectation) inventory.ConsumerWrite {
	return inventory.ConsumerWrite{Consumer: consumer, Project: "p", User: "u", Expect: expect}
}
