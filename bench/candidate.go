package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"berth/internal/store"
)

// What is asked for: a server of a usual size; and one with disk from its host, and processors, memory and a card
// from the same part of it.
const (
	server       = "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20"
	nestedServer = "resources=DISK_GB:20&resources_N=VCPU:2,MEMORY_MB:4096&resources_C=VGPU:1&group_policy=none&same_subtree=_N,_C"
)

// openCandidates measures what a scheduler asks for first: a few of many hosts.
func openCandidates(ctx context.Context, s *stack) (*subject, error) {
	return candidatesOf(ctx, s, flat(s.hosts(1000)), server+"&limit=100", 1)
}

// openNestedCandidates measures all candidates of hosts with parts: two NUMA nodes, below each two cards.
func openNestedCandidates(ctx context.Context, s *stack) (*subject, error) {
	return candidatesOf(ctx, s, nested(s.hosts(1000)), nestedServer, 1)
}

// openAllCandidates measures how many providers are looked at when all candidates of so many are asked for: as many
// in a second as of fewer, if the time grows as their number does.
func openAllCandidates(n int) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		return candidatesOf(ctx, s, flat(s.hosts(n)), server, n)
	}
}

// candidatesOf measures a query, which counts for so many.
func candidatesOf(ctx context.Context, s *stack, f forest, query string, count int) (*subject, error) {
	a, err := s.plant(ctx, f)
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context) error { return a.get(ctx, "/placement/allocation_candidates?"+query) }
	return &subject{
		before: ask, // plans are made once
		op:     func(ctx context.Context, _ int) (int, error) { return count, ask(ctx) },
	}, nil
}

// forest is the providers of one database.
type forest struct {
	name string
	sql  []string
}

// hosts is how many hosts stand for so many: to try the harness, few will do.
func (s *stack) hosts(n int) int {
	if s.devServer {
		return n / 50
	}
	return n
}

// flat is hosts with the traits of a usual hypervisor and five servers each.
func flat(n int) forest {
	return forest{fmt.Sprint("flat_", n), []string{
		fmt.Sprintf(`
			insert into provider (id, uuid, name, root_id)
			select n, gen_random_uuid()::text, 'host-' || n, n
			from generate_series(1, %d) as n`, n),
		inventories(`c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')`),
		`insert into provider_trait (provider_id, trait_id) select p.id, t.id from provider p, trait t where t.id <= 40`,
		servers(n),
	}}
}

// nested is hosts of seven providers each.
func nested(n int) forest {
	return forest{fmt.Sprint("nested_", n), []string{
		fmt.Sprintf(`
			insert into provider (id, uuid, name, parent_id, root_id)
			select 7 * host + part, gen_random_uuid()::text, 'part-' || 7 * host + part, 7 * host + above, 7 * host
			from generate_series(1, %d) as host
			cross join (values (0, null), (1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)) as parts (part, above)`, n),
		inventories(`c.name = any(case
			when p.parent_id is null then array['DISK_GB']
			when p.parent_id = p.root_id then array['VCPU', 'MEMORY_MB']
			else array['VGPU'] end)`),
		`insert into provider_trait (provider_id, trait_id)
			select p.id, t.id from provider p, trait t where t.id <= 40 and p.parent_id is null`,
		servers(n),
	}}
}

func inventories(of string) string {
	return `
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select p.id, c.id, 1000000, 0, 1, 1000000, 1, 1
		from provider p
		join resource_class c on ` + of
}

func servers(hosts int) string {
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

// database makes another database of berth.
func (s *stack) database(ctx context.Context, name string) (string, error) {
	if _, err := s.rows.Exec(ctx, `create database `+name); err != nil {
		return "", err
	}
	u, err := url.Parse(s.postgres.URL)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	_, err = store.Migrate(ctx, u.String())
	return u.String(), err
}

// plant makes a database with those providers and runs the API alone over it, once for all figures.
func (s *stack) plant(ctx context.Context, f forest) (*api, error) {
	if a := s.forests[f.name]; a != nil {
		return a, nil
	}
	database, err := s.database(ctx, f.name)
	if err != nil {
		return nil, err
	}
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for _, sql := range append(f.sql, `vacuum analyze`) {
		if _, err := c.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("providers of %s: %w", f.name, err)
		}
	}
	a, err := s.startBerth(ctx, f.name, database, "api")
	if err == nil {
		s.forests[f.name] = a
	}
	return a, err
}
