package inventorystore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/storetest"
)

// createTrees creates provider trees. Each provider tree has a root provider with inventories of VCPU,
// MEMORY_MB and DISK_GB, and the given number of child providers, each with an inventory of VGPU. Every
// hundredth root provider has the trait CUSTOM_RARE and an inventory of the class CUSTOM_RARE. All root
// providers are in the same aggregate.
func createTrees(t *testing.T, url string, trees, children int) {
	t.Helper()
	for _, sql := range []string{
		fmt.Sprintf(`
			insert into provider (id, uuid, name, parent_id, root_id)
			select n, gen_random_uuid()::text, 'p' || n, case when n > %[1]d then (n - 1) %% %[1]d + 1 end, (n - 1) %% %[1]d + 1
			from generate_series(1, %[1]d * (1 + %[2]d)) as n`, trees, children),
		`insert into resource_class (name) values ('CUSTOM_RARE')`,
		`insert into trait (name) values ('CUSTOM_RARE')`,
		`insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
			select p.id, c.id, 1000, 0, 1, 1000, 1, 1
			from provider p
			join resource_class c on case
				when p.parent_id is not null then c.name = 'VGPU'
				when c.name = 'CUSTOM_RARE' then p.id % 100 = 0
				else c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB') end`,
		`insert into provider_trait (provider_id, trait_id)
			select p.id, t.id
			from provider p
			join trait t on t.name = 'CUSTOM_RARE' and p.id % 100 = 0 and p.parent_id is null or t.name in ('COMPUTE_NODE', 'HW_CPU_X86_AVX')`,
		`insert into provider_aggregate (provider_id, aggregate) select id, '5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f01' from provider where parent_id is null`,
		`insert into consumer (uuid, project, user_id, generation) select gen_random_uuid()::text, 'p', 'u', 1 from provider where parent_id is null`,
		`insert into allocation (consumer_id, provider_id, class_id, amount)
			select k.id, i.provider_id, i.class_id, 1
			from (select id, row_number() over (order by id) as n from consumer) k
			join inventory i on i.provider_id = k.n`,
		`analyze`,
	} {
		storetest.Exec(t, url, sql)
	}
}

func hostQuery() inventory.CandidateQuery {
	return inventory.CandidateQuery{AllClasses: true, WithTraits: true,
		Groups: []inventory.Group{{Resources: map[string]int64{"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1}}}}
}

// The search reads provider trees in batches, in the order of their IDs or in a random order; each tree must
// be searched exactly once.
func TestCandidates_EveryTreeIsSearchedOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	createTrees(t, url, 5000, 1)
	s := storetest.Open(t, url)
	count := func(change func(*inventory.CandidateQuery)) [2]int {
		q := hostQuery()
		change(&q)
		found, err := s.Inventory.Candidates(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		providers := map[string]bool{}
		for _, c := range found.Candidates {
			providers[c[0].UUID] = true
		}
		for _, n := range found.SummarizedProviders() {
			if len(namesOf(t, n.AllTraits)) < 2 || n.Parent == nil && n.InventoryOf("VCPU").Used != 1 {
				t.Fatalf(
					"summary of provider %s: got the traits %v, want at least two traits and, for a root provider, 1 VCPU in use",
					n.UUID,
					n.AllTraits,
				)
			}
		}
		return [2]int{len(found.Candidates), len(providers)}
	}

	for name, tc := range map[string]struct {
		want   int
		change func(*inventory.CandidateQuery)
	}{
		"all":               {5000, func(*inventory.CandidateQuery) {}},
		"all at random":     {5000, func(q *inventory.CandidateQuery) { q.Limits.Seed = 7 }},
		"some":              {100, func(q *inventory.CandidateQuery) { q.Limits.Candidates = 100 }},
		"some at random":    {100, func(q *inventory.CandidateQuery) { q.Limits.Candidates, q.Limits.Seed = 100, 8 }},
		"a rare trait":      {50, func(q *inventory.CandidateQuery) { q.Groups[0].Traits.Required = [][]string{{"CUSTOM_RARE"}} }},
		"a rare class":      {50, func(q *inventory.CandidateQuery) { q.Groups[0].Resources["CUSTOM_RARE"] = 1 }},
		"a rare root":       {50, func(q *inventory.CandidateQuery) { q.RootTraits.Required = [][]string{{"CUSTOM_RARE"}} }},
		"not the rare":      {4950, func(q *inventory.CandidateQuery) { q.Groups[0].Traits.Forbidden = []string{"CUSTOM_RARE"} }},
		"unknown aggregate": {0, func(q *inventory.CandidateQuery) { q.Groups[0].Aggregates.Required = [][]string{{"nobody's"}} }},
	} {
		if d := cmp.Diff([2]int{tc.want, tc.want}, count(tc.change)); d != "" {
			t.Errorf("numbers of candidates and of providers in them, request %q (-want +got):\n%s", name, d)
		}
	}
}

func TestCandidates_EndWithTheRequestContext(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := s.Inventory.Candidates(ctx, hostQuery()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// No query may scan a large table sequentially, unless the request asks for all rows of the table.
func TestPlacementQueries_UseIndexes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	createTrees(t, url, 4000, 1)
	s := storetest.Open(t, url)
	const zone = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f01"
	var some string
	if err := storetest.Connect(t, url).QueryRow(t.Context(), `select uuid from provider where id = 100`).Scan(&some); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, url, `select pg_stat_reset()`)

	limited := hostQuery()
	limited.Limits.Candidates = 100
	rare := hostQuery()
	rare.Groups[0].Traits.Required = [][]string{{"CUSTOM_RARE"}}
	zoned := limited
	zoned.Groups = []inventory.Group{
		{
			Suffix:     "1",
			Resources:  map[string]int64{"VCPU": 1},
			Aggregates: inventory.Rule{Required: [][]string{{zone}}},
		},
	}
	tree := hostQuery()
	tree.Groups[0].InTree = some
	for range 8 { // PostgreSQL may use a generic plan from the sixth execution on
		for _, q := range []inventory.CandidateQuery{limited, rare, zoned, tree} {
			if found, err := s.Inventory.Candidates(t.Context(), q); err != nil ||
				len(found.Candidates) == 0 {
				t.Fatal(found, err)
			}
		}
		for _, f := range []inventory.ProviderFilter{{UUID: &some}, {Name: &some}, {InTree: &some, Resources: map[string]int64{"VCPU": 1}},
			{Traits: inventory.Rule{Required: [][]string{{"CUSTOM_RARE"}}}, Resources: map[string]int64{"VCPU": 1}}} {
			if _, err := s.Inventory.Providers(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Close() // connections report their statistics when they are closed

	rows, err := storetest.Connect(t, url).Query(t.Context(), `
		select relname, seq_scan
		from pg_stat_user_tables
		where seq_tup_read > 1000 * seq_scan and relname <> 'trait'`)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var scans int
	if _, err := pgx.ForEachRow(rows, []any{&table, &scans}, func() error {
		t.Errorf("sequential scans of the table %s: got %d, want 0", table, scans)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
