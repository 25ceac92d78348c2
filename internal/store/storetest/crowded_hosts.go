package storetest

// CrowdedHosts is an SQL script that adds 50 hosts and 15 leases, one after the other in time, each with 64
// reservations of instances on all hosts. The first lease starts, and all others are due; the end of all but
// the last one is over.
const CrowdedHosts = `
	set local session_replication_role = replica;
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	select 'h' || n, gen_random_uuid(), gen_random_uuid(), 'h' || n, 64, 262144, 2000 from generate_series(1, 50) n;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5(n::text)::uuid, 'l' || n, 'u', 'p', case n when 1 then 'STARTING' else 'PENDING' end,
		now() + (n - 16) * interval '10 minutes' + interval '1 minute', now() + (n - 15) * interval '10 minutes' + interval '1 minute'
	from generate_series(1, 15) n;
	insert into event (id, lease_id, event_type, at, status)
	select gen_random_uuid(), id, 'start_lease', start_at, case status when 'PENDING' then 'UNDONE' else 'IN_PROGRESS' end from lease
	union all
	select gen_random_uuid(), id, 'end_lease', end_at, 'UNDONE' from lease;
	insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties,
		before_end, amount, vcpus, memory_mb, resources)
	select md5(l.id::text || n)::uuid, l.id, n, 'virtual:instance', 'pending', 0, 0, '', '', 'default', 50, 1, 1, '{"VCPU": 1, "MEMORY_MB": 1}'
	from lease l, generate_series(0, 63) n;
	insert into host_allocation (reservation_id, host_id, during)
	select r.id, h.id, tstzrange(l.start_at, l.end_at) from lease l join reservation r on r.lease_id = l.id cross join host h`
