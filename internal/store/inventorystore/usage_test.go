package inventorystore_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// crowd creates a provider "p" with an inventory of VCPU, from which 2,000 consumers have allocated one VCPU
// each.
const crowd = `
	insert into provider (id, uuid, name, root_id) values (1, 'aaaaaaaa-0000-4000-8000-000000000001', 'p', 1);
	select setval('provider_id', 1);
	insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
	select 1, id, 100000, 0, 1, 100000, 1, 1 from resource_class where name = 'VCPU';
	insert into consumer (uuid, project, user_id, generation) select gen_random_uuid(), 'p', 'u', 1 from generate_series(1, 2000);
	insert into allocation (consumer_id, provider_id, class_id, amount)
	select k.id, i.provider_id, i.class_id, 1 from consumer k, inventory i`

const crowded = "aaaaaaaa-0000-4000-8000-000000000001"

// TestUsage_RequestsReadNoAllocationsOfOtherConsumers counts the index entries and rows of the table
// allocation that PostgreSQL reads. If a request summed the allocations of the provider, the request would
// read 2,000 of them.
func TestUsage_RequestsReadNoAllocationsOfOtherConsumers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, crowd)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	vcpu := map[string]int64{"VCPU": 1}
	consumer := uuid.NewString()
	for _, request := range []struct {
		name string
		run  func(*store.Store) error
	}{
		{"allocate", func(s *store.Store) error {
			return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(consumer, crowded, 1, inventory.ExpectAbsent()))
		}},
		{"change an allocation", func(s *store.Store) error {
			return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(consumer, crowded, 2, inventory.ExpectGeneration(1)))
		}},
		{"delete an allocation", func(s *store.Store) error { return s.Inventory.DeleteAllocations(t.Context(), consumer) }},
		{"search candidates", func(s *store.Store) error {
			_, err := s.Inventory.Candidates(t.Context(), inventory.CandidateQuery{AllClasses: true, Groups: []inventory.Group{{Resources: vcpu}}})
			return err
		}},
		{"list the providers with free VCPUs", func(s *store.Store) error {
			_, err := s.Inventory.Providers(t.Context(), inventory.ProviderFilter{Resources: vcpu})
			return err
		}},
		{"read the usage of the provider", func(s *store.Store) error {
			_, err := s.Inventory.ProviderUsage(t.Context(), crowded)
			return err
		}},
	} {
		before := storetest.ReadsOfTables(t, watch, "allocation")
		s := storetest.Open(t, url)
		err := request.run(s)
		s.Close() // connections report their statistics when they are closed
		after := storetest.ReadsOfTables(t, watch, "allocation")
		if n := after["allocation"].Rows - before["allocation"].Rows; err != nil || n > 20 {
			t.Errorf("%s: got %d reads of allocations, error %v; want at most 20 and no error",
				request.name, n, err)
		}
	}
}

func TestUsage_FollowsEveryStatementThatWritesAllocations(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, crowd)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	for _, statement := range []struct {
		sql  string
		used string // by provider and class
	}{
		{`select`, "1/0: 2000"},
		{`insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio) values (1, 1, 50, 0, 1, 50, 1, 1)`,
			"1/0: 2000, 1/1: 0"},
		{`insert into allocation (consumer_id, provider_id, class_id, amount) select id, 1, 1, 3 from consumer order by id limit 4`, "1/0: 2000, 1/1: 12"},
		{`update allocation set amount = 5 where class_id = 1`, "1/0: 2000, 1/1: 20"},
		{`delete from allocation where class_id = 1 and consumer_id = (select min(id) from consumer)`, "1/0: 2000, 1/1: 15"},
		{`update allocation set class_id = 0, amount = 2 where (consumer_id, class_id) = ((select min(id) from consumer), 0)`, "1/0: 2001, 1/1: 15"},
		{`delete from consumer where id = (select min(id) from consumer)`, "1/0: 1999, 1/1: 15"},
		{`update inventory set total = 1 where class_id = 1`, "1/0: 1999, 1/1: 15"},
		{`delete from consumer`, "1/0: 0, 1/1: 0"},
	} {
		storetest.Exec(t, url, statement.sql)
		var used string
		var wrong int
		err := watch.QueryRow(t.Context(), fmt.Sprintf(`
			select (select string_agg(format('%%s/%%s: %%s', provider_id, class_id, used), ', ' order by class_id) from inventory), (%s)`,
			storetest.CountWrongUsage)).Scan(&used, &wrong)
		if err != nil || used != statement.used || wrong != 0 {
			t.Errorf(
				"usage after %s: got %s, %d inventories whose usage is not the sum of their allocations, error %v; want %s and none",
				statement.sql, used, wrong, err, statement.used,
			)
		}
	}
}

func TestRepairUsage_CorrectsWhatDiffersFromTheAllocations(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, crowd)
	storetest.FixPlans(t, url)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `update inventory set used = 7`)
	for _, want := range [][]string{{"VCPU of provider " + crowded}, nil} {
		compared, corrected, err := s.Inventory.RepairUsage(t.Context())
		if d := cmp.Diff(want, corrected); err != nil || compared != 1 || d != "" {
			t.Errorf(
				"repair the usage: got %d compared inventories, error %v; want 1; corrected (-want +got):\n%s",
				compared, err, d,
			)
		}
	}
	var wrong int
	if err := storetest.Connect(t, url).QueryRow(t.Context(), storetest.CountWrongUsage).Scan(&wrong); err != nil ||
		wrong != 0 {
		t.Errorf("inventories with a wrong usage after the repair: got %d, error %v; want 0", wrong, err)
	}
}
