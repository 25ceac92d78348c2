package figure

import (
	"context"
	"fmt"

	"berth/bench/harness"
)

// Two queries for allocation candidates. The query `server` requests a server of a usual size. The query
// `nestedServer` requests a server with disk from the root provider, and with processors, memory and a VGPU
// from the same NUMA node.
const (
	server       = "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20"
	nestedServer = "resources=DISK_GB:20&resources_N=VCPU:2,MEMORY_MB:4096&resources_C=VGPU:1&group_policy=none&same_subtree=_N,_C"
)

// openCandidates measures the query that a Nova scheduler sends: at most 100 candidates out of 1,000 hosts.
func openCandidates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return measureCandidates(ctx, s, flatProviders(s.ScaleRows(1000)), server+"&limit=100", 1)
}

// openNestedCandidates measures a query for all candidates of nested providers: each host has two NUMA nodes
// with two VGPUs each.
func openNestedCandidates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return measureCandidates(ctx, s, nestedProviders(s.ScaleRows(1000)), nestedServer, 1)
}

// openAllCandidates measures a query for all allocation candidates of n hosts, and reports the rate in
// providers per second. If the time of the query grows linearly with the number of hosts, the rate in
// providers per second does not depend on n.
func openAllCandidates(n int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		return measureCandidates(ctx, s, flatProviders(s.ScaleRows(n)), server, n)
	}
}

// measureCandidates measures a query for allocation candidates over a dataset. Each query counts as `count`
// operations.
func measureCandidates(
	ctx context.Context,
	s *harness.Stack,
	d harness.Dataset,
	query string,
	count int,
) (*Subject, error) {
	a, err := s.LoadDataset(ctx, d)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context) error { return a.Get(ctx, "/placement/allocation_candidates?"+query) }
	return &Subject{
		setUp: get, // so that the query plans are cached
		op:    func(ctx context.Context, _ int) (int, error) { return count, get(ctx) },
	}, nil
}

// flatProviders returns a dataset of n providers without children, each with 40 traits and five consumers.
func flatProviders(n int) harness.Dataset {
	return harness.Dataset{Name: fmt.Sprint("flat_", n), SQL: []string{
		fmt.Sprintf(`
			insert into provider (id, uuid, name, root_id)
			select n, gen_random_uuid()::text, 'host-' || n, n
			from generate_series(1, %d) as n`, n),
		insertInventories(`c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')`),
		`insert into provider_trait (provider_id, trait_id) select p.id, t.id from provider p, trait t where t.id <= 40`,
		insertConsumers(n),
	}}
}

// nestedProviders returns a dataset of n provider trees with seven providers each.
func nestedProviders(n int) harness.Dataset {
	return harness.Dataset{Name: fmt.Sprint("nested_", n), SQL: []string{
		fmt.Sprintf(`
			insert into provider (id, uuid, name, parent_id, root_id)
			select 7 * host + part, gen_random_uuid()::text, 'part-' || 7 * host + part, 7 * host + above, 7 * host
			from generate_series(1, %d) as host
			cross join (values (0, null), (1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)) as parts (part, above)`, n),
		insertInventories(`c.name = any(case
			when p.parent_id is null then array['DISK_GB']
			when p.parent_id = p.root_id then array['VCPU', 'MEMORY_MB']
			else array['VGPU'] end)`),
		`insert into provider_trait (provider_id, trait_id)
			select p.id, t.id from provider p, trait t where t.id <= 40 and p.parent_id is null`,
		insertConsumers(n),
	}}
}

// insertInventories returns SQL that gives every provider p an inventory of each resource class c for which
// the condition is true. The parameter `condition` is an SQL condition in which p is the provider and c is
// the resource class.
func insertInventories(condition string) string {
	return `
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select p.id, c.id, 1000000, 0, 1, 1000000, 1, 1
		from provider p
		join resource_class c on ` + condition
}

// insertConsumers returns SQL that gives every root provider five consumers with allocations.
func insertConsumers(hosts int) string {
	return fmt.Sprintf(`
		with consumers as (
			insert into consumer (uuid, project, user_id, generation)
			select gen_random_uuid()::text, 'bench', 'bench', 1 from generate_series(1, 5 * %[1]d)
			returning id)
		insert into allocation (consumer_id, provider_id, class_id, amount)
		select k.id, i.provider_id, i.class_id, 2
		from consumers k
		join (select id, dense_rank() over (order by root_id) as host from provider) p on p.host = 1 + k.id %% %[1]d
		join inventory i on i.provider_id = p.id`, hosts)
}
