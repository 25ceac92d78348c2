package dataset

import (
	"fmt"

	"berth/bench/harness"
)

// LeaseCalendar returns a dataset of hosts with past and pending leases. The past leases of the dataset have
// no host allocations, because berth deletes host allocations at the end of a lease. The pending leases of
// the dataset begin tomorrow or later; on each host, one pending lease follows the other.
func LeaseCalendar(hosts, past, pending int) harness.Dataset {
	return harness.Dataset{Name: "lease_calendar", SQL: []string{
		`set session_replication_role = replica`, // no triggers and no foreign key checks
		`insert into resource_class (name) values ('CUSTOM_PHYSICAL_HOST') on conflict do nothing`,
		insertProviders(hosts),
		insertHosts(hosts),
		insertInventories(hostClass, 0),
		pastLeases(past, `'bench'`),
		pendingLeases(0, pending, hosts, `'bench'`),
		`set session_replication_role = origin`,
	}}
}

// hostClass is the condition of insertInventories for the reservable hosts.
const hostClass = `c.name = 'CUSTOM_PHYSICAL_HOST' and p.parent_id is not null`

// insertHosts returns SQL that makes the first n root providers reservable hosts.
func insertHosts(n int) string {
	return fmt.Sprintf(`
		with wanted as materialized (
			select id as root, uuid::uuid as provider, name, gen_random_uuid() as nested, nextval('provider_id') as leaf
			from (select id, uuid, name from provider where parent_id is null order by id limit %d) as p),
		leaves as (
			insert into provider (id, uuid, name, root_id, parent_id)
			select leaf, nested::text, 'blazar_' || name, root, root from wanted)
		insert into host (hostname, provider, nested, service_name, hypervisor_type, vcpus, memory_mb, local_gb)
		select name, provider, nested, name, 'QEMU', 64, 262144, 2000
		from wanted
		order by root`, n)
}

// pastLeases returns SQL that inserts n leases that have ended. The parameter `project` is SQL for the
// project of the n-th lease.
func pastLeases(n int, project string) string {
	return insertLeases(0, n, "TERMINATED", "deleted", "DONE", project,
		`- interval '1 hour' - n * interval '10 minutes'`)
}

// pendingLeases returns SQL that inserts the pending leases with the numbers from `first` to `end` - 1, which
// begin tomorrow or later. Each of them has one of the hosts, and no host has two of them at the same time.
func pendingLeases(first, end, hosts int, project string) string {
	return insertLeases(first, end, "PENDING", "pending", "UNDONE", project,
		fmt.Sprintf(`+ interval '1 day' + (n / %d) * interval '2 hours'`, hosts)) + fmt.Sprintf(`;
		insert into host_allocation (reservation_id, host_id, during, owner)
		select r.id, 1 + n %% %d, tstzrange(l.start_at, l.end_at), r.id
		from generate_series(%d, %d - 1) as n
		join lease l on l.id = md5('PENDING' || n)::uuid
		join reservation r on r.lease_id = l.id`, hosts, first, end)
}

// insertLeases returns SQL that inserts the leases of one hour with the numbers from `first` to `end` - 1.
// The parameters `status`, `reservation` and `event` are the statuses of the leases, their reservations and
// their events. The parameter `begins` is SQL for the start of the n-th lease, relative to the current hour.
func insertLeases(first, end int, status, reservation, event, project, begins string) string {
	return fmt.Sprintf(`
		with made as (
			insert into lease (id, name, user_id, project_id, status, start_at, end_at)
			select md5('%[2]s' || n)::uuid, 'lease-' || n, 'bench', %[6]s, '%[2]s', date_trunc('hour', now()) %[5]s,
				date_trunc('hour', now()) %[5]s + interval '1 hour'
			from generate_series(%[7]d, %[1]d - 1) as n
			returning id, start_at, end_at),
		held as (
			insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties,
				resource_properties, before_end)
			select gen_random_uuid(), id, 0, 'physical:host', '%[3]s', 1, 1, '', '', '' from made)
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), m.id, e.event_type, e.at, '%[4]s'
		from made m
		cross join lateral (values ('start_lease', m.start_at), ('before_end_lease', m.start_at), ('end_lease', m.end_at)) as e (event_type, at)`,
		end, status, reservation, event, begins, project, first)
}
