package inventorystore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestAllocations_ConcurrentWritersKeepTheInvariants(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	const capacity = 20
	providers := make([]string, 4)
	for i := range providers {
		providers[i] = storetest.AddHost(t, s, fmt.Sprint("p", i),
			map[string]inventory.Inventory{"VCPU": inventory.NewInventory(capacity)})
	}
	consumers := make([]string, 6)
	for i := range consumers {
		consumers[i] = uuid.NewString()
	}

	raceWriters(t, 12, func(i int) error {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for range 40 {
			if err := randomWrite(t, s, r, consumers, providers); err != nil && faultKind(err) < 0 {
				return err
			}
		}
		return nil
	})

	s.Close() // connections report their statistics when they are closed

	db := storetest.Connect(t, url)
	for _, invariant := range []string{
		`select deadlocks from pg_stat_database where datname = current_database()`,
		`select count(*) from consumer c where not exists (select from allocation where consumer_id = c.id)`,
		fmt.Sprintf(`select count(*) from (select sum(amount) as used from allocation group by provider_id) as busy where used > %d`, capacity),
		storetest.CountWrongUsage,
		countHistoryGaps,
	} {
		var broken int
		if err := db.QueryRow(t.Context(), invariant).Scan(&broken); err != nil || broken != 0 {
			t.Errorf(
				"number of violations of an invariant after concurrent writes, counted by the query %s: got %d, error %v; want 0",
				invariant, broken, err,
			)
		}
	}
}

// A consumer that appears while DeleteAllocations runs must not make it lock the providers before the
// consumer. The test creates, changes and deletes one consumer so often that this happens.
func TestLockOrder_DeletionIgnoresAConsumerThatAppears(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	vcpus := map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1000)}
	p, q := storetest.AddHost(t, s, "p", vcpus), storetest.AddHost(t, s, "q", vcpus)
	consumer, one := uuid.NewString(), map[string]int64{"VCPU": 1}
	raceWriters(t, 12, func(i int) error {
		for range storetest.Rounds(t, 60) {
			if i%3 == 0 {
				if err := s.Inventory.DeleteAllocations(t.Context(), consumer); err != nil && !isNotFound(err) {
					return err
				}
				continue
			}
			held, err := s.Inventory.Allocations(t.Context(), consumer)
			if err != nil {
				return err
			}
			expect := inventory.ExpectGeneration(held.Generation)
			if len(held.Allocations) == 0 {
				expect = inventory.ExpectAbsent()
			}
			w := storetest.NoAllocations(consumer, expect)
			w.Allocations = inventory.Allocations{p: one, q: one}
			if err := s.Inventory.PutAllocations(t.Context(), w); err != nil && faultKind(err) < 0 {
				return err
			}
		}
		return nil
	})
	s.Close() // connections report their statistics when they are closed
	var deadlocks int
	err := storetest.Connect(t, url).QueryRow(t.Context(),
		`select deadlocks from pg_stat_database where datname = current_database()`).Scan(&deadlocks)
	if err != nil || deadlocks > 0 {
		t.Errorf("deletions and writes of one consumer: got %d deadlocks, error %v; want none", deadlocks, err)
	}
}

// randomWrite calls a random method that changes allocations, with a generation that the writer has just
// read.
func randomWrite(t *testing.T, s *store.Store, r *rand.Rand, consumers, providers []string) error {
	some := func() inventory.ConsumerWrite {
		consumer := consumers[r.IntN(len(consumers))]
		held, err := s.Inventory.Allocations(t.Context(), consumer)
		if err != nil {
			t.Error(err)
		}
		expect := inventory.ExpectGeneration(held.Generation)
		if len(held.Allocations) == 0 {
			expect = inventory.ExpectAbsent()
		}
		w := storetest.NoAllocations(consumer, expect)
		w.Allocations = inventory.Allocations{}
		for range r.IntN(3) {
			w.Allocations[providers[r.IntN(len(providers))]] = map[string]int64{"VCPU": 1 + r.Int64N(9)}
		}
		return w
	}
	switch r.IntN(8) {
	case 5:
		return randomReshape(t, s, r, some(), providers)

	case 0:
		if err := s.Inventory.DeleteAllocations(t.Context(), consumers[r.IntN(len(consumers))]); err != nil &&
			!isNotFound(err) {
			return err
		}
		return nil
	case 1, 2:
		a, b := some(), some()
		if a.Consumer == b.Consumer {
			return s.Inventory.PutAllocations(t.Context(), a)
		}
		return s.Inventory.ReplaceAllocations(t.Context(), []inventory.ConsumerWrite{a, b})
	case 4:
		return s.Inventory.PutAllocations(t.Context(),
			storetest.NoAllocations(consumers[r.IntN(len(consumers))], inventory.Expectation{}))
	case 3:
		provider := providers[r.IntN(len(providers))]
		p, err := s.Inventory.Provider(t.Context(), provider)
		if err != nil {
			return err
		}
		_, err = s.Inventory.ReplaceInventories(t.Context(), provider, p.Generation,
			map[string]inventory.Inventory{"VCPU": inventory.NewInventory(20)})
		return err
	default:
		return s.Inventory.PutAllocations(t.Context(), some())
	}
}

func TestAllocations_ConcurrentInventoryDeleteAndAllocationExcludeEachOther(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)

	for round := range 10 {
		p := storetest.AddHost(t, s, fmt.Sprint("p", round),
			map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)})
		won := raceWriters(t, 4, func(i int) error {
			switch i {
			case 0:
				return s.Inventory.DeleteInventories(t.Context(), p)
			case 1:
				return s.Inventory.DeleteProvider(t.Context(), p)
			default:
				return s.Inventory.PutAllocations(t.Context(),
					storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
			}
		}, inventory.InventoryInUse, inventory.ProviderInUse, inventory.Conflict, inventory.Invalid, -1)

		u, err := s.Inventory.ProviderUsage(t.Context(), p)
		switch {
		// the provider is deleted; another writer may have deleted its inventories before
		case isNotFound(err) && won >= 1:
		case err == nil && won == 1 && u.Used["VCPU"] == 1:
		default:
			t.Errorf(
				"round %d of concurrent deletions and allocations: got %d successful writers, usage %+v, error %v; want the provider deleted, or one success and 1 VCPU in use",
				round, won, u, err,
			)
		}
	}
}

func TestEnsureClassAndTrait_ConcurrentCallsSucceed(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)

	if won := raceWriters(t, 16, func(int) error {
		if _, err := s.Inventory.EnsureClass(t.Context(), "CUSTOM_X"); err != nil {
			return err
		}
		_, _, err := s.Inventory.EnsureTrait(t.Context(), "CUSTOM_X")
		return err
	}); won != 16 {
		t.Errorf("create the same class and trait concurrently: got %d successes of 16 calls, want 16", won)
	}
}

func TestProviderTree_ChildAddedDuringAMoveHasTheNewRoot(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a := storetest.AddHost(t, s, "a", nil)
	b := storetest.AddHost(t, s, "b", nil)
	mid := storetest.AddHost(t, s, "mid", nil)

	raceWriters(t, 8, func(i int) error {
		for n := range 10 {
			var err error
			if i < 2 {
				_, err = s.Inventory.UpdateProvider(t.Context(), inventory.ProviderChange{
					UUID:   mid,
					Name:   "mid",
					Parent: &[]string{a, b}[(i+n)%2],
					Move:   true,
				})
			} else {
				_, err = s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: uuid.NewString(), Name: fmt.Sprint("kid", i, n), Parent: mid})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})

	m, err := s.Inventory.Provider(t.Context(), mid)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Inventory.Providers(t.Context(), inventory.ProviderFilter{InTree: &mid})
	if err != nil || len(tree) != 62 || m.Root != m.Parent {
		t.Errorf(
			"list the tree of the moved provider: got %d providers, error %[3]v, provider %+[2]v; want 62 providers, and the provider's parent as its root",
			len(tree), m, err,
		)
	}
}

func TestAllocations_PlansOfEmptyTablesUseIndexes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(5000)})
	for range 1500 { // so many that every connection uses a generic plan
		storetest.Allocate(t, s, storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
	}
	s.Close()

	db := storetest.Connect(t, url)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var rows, scans int
		err := db.QueryRow(t.Context(), `
			select n_tup_ins, seq_scan
			from pg_stat_user_tables
			where relname = 'consumer'`).Scan(&rows, &scans)
		if err != nil {
			t.Fatal(err)
		}
		if rows < 1500 && time.Now().Before(deadline) {
			continue
		}
		if rows != 1500 || scans > 40 {
			t.Errorf(
				"statistics of the table consumer after 1500 writes: got %d inserted rows and %d sequential scans, want 1500 rows and at most 40 scans",
				rows,
				scans,
			)
		}
		return
	}
}
