package inventorystore_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

// Summaries contain all traits of a provider. berth reads them again only if the provider has changed, also
// if another process has changed it.
func TestCandidates_SummariesHaveTheTraitsOfTheDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	createTrees(t, url, 3, 0)
	q := storetest.NewQueryCounter(t, url)
	s, other := storetest.Open(t, q.URL), storetest.Open(t, url)
	uuids := map[string]string{}
	for _, p := range []string{"p1", "p2", "p3"} {
		var uuid string
		if err := storetest.Connect(t, url).QueryRow(t.Context(), `select uuid from provider where name = $1`, p).Scan(&uuid); err != nil {
			t.Fatal(err)
		}
		uuids[uuid] = p
	}
	setTraits := func(name string, generation int64, traits ...string) {
		t.Helper()
		for uuid, p := range uuids {
			if p == name {
				if _, err := other.Inventory.SetProviderTraits(t.Context(), uuid, generation, append([]string{}, traits...)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// candidates compares the traits in the summaries, and returns the number of statements.
	candidates := func(what string, want map[string][]string) int64 {
		t.Helper()
		before := q.Statements()
		found, err := s.Inventory.Candidates(t.Context(), hostQuery())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, n := range found.SummarizedProviders() {
			got[uuids[n.UUID]] = slices.Sorted(slices.Values(namesOf(t, n.AllTraits)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: traits in the summaries (-want +got):\n%s", what, d)
		}
		return q.Statements() - before
	}
	both := []string{"COMPUTE_NODE", "HW_CPU_X86_AVX"}
	want := map[string][]string{"p1": both, "p2": both, "p3": both}
	candidates("on a new connection", want)
	known := candidates("unchanged", want)

	setTraits("p2", 0, "HW_CPU_X86_AVX")
	want["p2"] = both[1:]
	if n := candidates("after a change", want); n <= known {
		t.Errorf("statements after a change: got %d, want more than the %d without a change", n, known)
	}
	if n := candidates("unchanged again", want); n != known {
		t.Errorf("statements: got %d, want %d as before the change", n, known)
	}

	setTraits("p2", 1)
	want["p2"] = nil
	candidates("without traits", want)
	candidates("still without traits", want)

	// A standby that lacked the last change replaces the database, and then another change gets the same
	// generation.
	storetest.Exec(t, url, `update provider set generation = 1 where name = 'p2'`)
	setTraits("p2", 1, "COMPUTE_NODE")
	want["p2"] = both[:1]
	candidates("the same generation again", want)
}

func TestCandidates_KeepTheTraitsOfALimitedNumberOfProviders(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	createTrees(t, url, 30, 0)
	s := storetest.Open(t, url)
	const limit = 20
	inventorystore.SetMaxCachedTraits(s.Inventory, limit)
	for range 3 {
		found, err := s.Inventory.Candidates(t.Context(), hostQuery())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range found.SummarizedProviders() {
			if traits := namesOf(t, n.AllTraits); len(traits) != 2 {
				t.Errorf("traits of provider %s: got %v, want two", n.UUID, traits)
			}
		}
		if n := inventorystore.CachedTraits(s.Inventory); n != limit {
			t.Errorf("providers whose traits are kept: got %d, want %d", n, limit)
		}
	}
}

// namesOf returns the names of the traits in a summary.
func namesOf(t *testing.T, traits inventory.TraitNames) (names []string) {
	t.Helper()
	if err := json.Unmarshal([]byte("["+traits+"]"), &names); err != nil {
		t.Fatal(err)
	}
	return names
}
