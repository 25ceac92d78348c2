// Package dataset has the SQL that fills the databases of the measurements.
package dataset

import (
	"fmt"

	"berth/bench/harness"
)

// SoleProvider is the UUID of the provider in a dataset of OneProvider.
const SoleProvider = "6d6e1c5e-6a6b-4a2f-9a53-4e8a4f1c0b11"

// OneProvider returns a dataset of one provider with n consumers, each of which has allocations of three
// resource classes.
func OneProvider(n int) harness.Dataset {
	return harness.Dataset{Name: fmt.Sprint("one_provider_", n), SQL: []string{
		fmt.Sprintf(`insert into provider (id, uuid, name, root_id) values (1, '%s', 'host', 1)`, SoleProvider),
		`insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
			select 1, id, 2147483647, 0, 1, 2147483647, 1, 1 from resource_class where name in ('VCPU', 'MEMORY_MB', 'DISK_GB')`,
		fmt.Sprintf(`
			with consumers as (
				insert into consumer (uuid, project, user_id, generation)
				select gen_random_uuid()::text, 'bench', 'bench', 1 from generate_series(1, %d)
				returning id)
			insert into allocation (consumer_id, provider_id, class_id, amount)
			select k.id, i.provider_id, i.class_id, 2 from consumers k, inventory i`, n),
	}}
}

// FlatProviders returns a dataset of n providers without children, each with 40 traits and five consumers.
func FlatProviders(n int) harness.Dataset {
	return harness.Dataset{Name: fmt.Sprint("flat_", n), SQL: []string{
		insertProviders(n),
		insertInventories(serverClasses, 0),
		insertTraits(40), // Nova sets about as many on a compute host
		insertConsumers(n),
	}}
}

// NestedProviders returns a dataset of n provider trees with seven providers each.
func NestedProviders(n int) harness.Dataset {
	return harness.Dataset{Name: fmt.Sprint("nested_", n), SQL: []string{
		fmt.Sprintf(`
			insert into provider (id, uuid, name, parent_id, root_id)
			select 7 * host + part, gen_random_uuid()::text, 'part-' || 7 * host + part, 7 * host + above, 7 * host
			from generate_series(1, %d) as host
			cross join (values (0, null), (1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)) as parts (part, above)`, n),
		insertInventories(`c.name = any(case
			when p.parent_id is null then array['DISK_GB']
			when p.parent_id = p.root_id then array['VCPU', 'MEMORY_MB']
			else array['VGPU'] end)`, 0),
		insertTraits(40) + ` and p.parent_id is null`,
		insertConsumers(n),
	}}
}

// insertProviders returns SQL that inserts the root providers host-1 to host-n.
func insertProviders(n int) string {
	return fmt.Sprintf(`
		insert into provider (id, uuid, name, root_id)
		select n, md5('provider' || n)::uuid::text, 'host-' || n, n
		from generate_series(1, %[1]d) as n;
		select setval('provider_id', %[1]d)`, n)
}

// serverClasses is the condition of insertInventories for the resource classes of a server.
const serverClasses = `c.name in ('VCPU', 'MEMORY_MB', 'DISK_GB')`

// insertTraits returns SQL that gives every provider p n traits.
func insertTraits(n int) string {
	return fmt.Sprintf(`
		insert into provider_trait (provider_id, trait_id)
		select p.id, t.id from provider p, trait t where t.id <= %d`, n)
}

// allocated is the amount of each allocation of a cloud.
const allocated = 2

// insertInventories returns SQL that gives every provider p an inventory of each resource class c for which
// the condition is true. The parameter `condition` is an SQL condition in which p is the provider and c is
// the resource class. The parameter `used` is the sum of the allocations that are inserted without triggers.
func insertInventories(condition string, used int) string {
	return fmt.Sprintf(`
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used)
		select p.id, c.id, 1000000, 0, 1, 1000000, 1, 1, %d
		from provider p
		join resource_class c on %s`, used, condition)
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
