package dataset

import (
	"fmt"

	"berth/bench/harness"
)

// PortsOfProjects returns a dataset of ports on 500 hosts with their addresses and journal entries. The
// project `big` has three fifths of the ports, and 200 other projects have the rest. One port in a hundred
// of the project `big` waits for its agent.
func PortsOfProjects(ports int) harness.Dataset {
	big := ports * 3 / 5
	return harness.Dataset{Name: "console_pages", SQL: []string{
		`set session_replication_role = replica`, // no triggers and no foreign key checks
		`insert into network (id, project, name, description, admin_up, shared, external, port_security, mtu, type)
			values ('00000000-0000-4000-8000-000000000001', 'big', 'big', '', true, false, false, true, 1500, 'local')`,
		insertL2Agents,
		fmt.Sprintf(`
			insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
			select case n when 0 then '00000000-0000-4000-8000-000000000000' else gen_random_uuid() end,
				'00000000-0000-4000-8000-000000000001', case when n < %d then 'big' else 'p' || n %% 200 end, 'port-' || n, '', true,
				('02' || lpad(to_hex(n), 10, '0'))::macaddr, gen_random_uuid(), 'compute:nova',
				case when n < %[1]d and n %% 100 = 0 then 'DOWN' else 'ACTIVE' end, 'host-' || n %% 500, 'normal', '{}', 'ovs', true
			from generate_series(0, %d - 1) as n`, big, ports),
		`insert into port_address (subnet_id, address, port_id, position)
			select '00000000-0000-4000-8000-000000000002', '10.0.0.0'::inet + row_number() over (), id, 0 from port`,
		`insert into block (object_id, entity, host, since) select id, 'L2', host, now() from port where status = 'DOWN'`,
		`insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, finished_at)
			select 'port', id, 'create', '{}', '{}', project, name, 'completed', now() from port`,
		`insert into consumer (uuid, project, user_id, type) select device_id, project, 'ann', 'INSTANCE' from port`,
		`insert into generation_change (actor, cause, consumer, consumer_to) select 'nova', 'allocations', device_id, 1 from port`,
		`set session_replication_role = origin`,
	}}
}

// agentHosts is the number of hosts with an L2 agent.
const agentHosts = 500

// insertL2Agents inserts the L2 agents of host-0 to host-499. Their last heartbeat is a day in the future, so
// that berth regards the agents as up although they send no heartbeats.
const insertL2Agents = `
	insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
	select gen_random_uuid(), 'Open vSwitch agent', 'host-' || n, 'bench', 'N/A', '{}', now() + interval '1 day'
	from generate_series(0, 499) as n`
