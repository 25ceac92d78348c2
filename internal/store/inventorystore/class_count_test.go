package inventorystore_test

import (
	"testing"

	"berth/internal/store/storetest"
)

// A search with a small limit reads the providers of the first trees only. How many providers have a class
// decides the order of the search, and is counted seldom.
func TestCandidates_SearchWithALimitReadsFewInventories(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	createTrees(t, url, 2000, 1)
	storetest.FixPlans(t, url)
	q := hostQuery()
	q.Limits.Candidates = 10
	c := storetest.Connect(t, url)
	before := storetest.ReadsOfTables(t, c, "inventory")["inventory"].Rows
	s := storetest.Open(t, url)
	const searches, most = 100, 500
	for range searches {
		found, err := s.Inventory.Candidates(t.Context(), q)
		if err != nil || len(found.Candidates) != 10 {
			t.Fatalf("search for ten candidates: got %v, error %v; want ten", found, err)
		}
	}
	s.Close() // connections report what they have read when they are closed
	if rows := (storetest.ReadsOfTables(t, c, "inventory")["inventory"].Rows - before) / searches; rows > most {
		t.Errorf("search for ten candidates of 2,000: got %d rows and index entries of inventories read, want at most %d",
			rows, most)
	}
}

// The number of providers with a class may be a minute old, but what a search finds is never old.
func TestCandidates_HaveTheProvidersThatGetAClassLater(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	createTrees(t, url, 20, 0)
	s := storetest.Open(t, url)
	q := hostQuery()
	q.Groups[0].Resources["CUSTOM_RARE"] = 1
	for _, step := range []struct {
		change string
		want   int
	}{
		{`select 1`, 0},
		{`insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
			select p.id, c.id, 10, 0, 1, 10, 1, 1
			from provider p
			join resource_class c on c.name = 'CUSTOM_RARE'`, 20},
		{`delete from inventory
			where provider_id > 5 and class_id = (select id from resource_class where name = 'CUSTOM_RARE')`, 5},
	} {
		storetest.Exec(t, url, step.change)
		found, err := s.Inventory.Candidates(t.Context(), q)
		if err != nil || len(found.Candidates) != step.want {
			t.Errorf("search after %s: got %d candidates, error %v; want %d", step.change, len(found.Candidates), err, step.want)
		}
	}
}
