package dataset

import (
	"crypto/md5"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"berth/bench/harness"
)

const (
	// networkPorts is the number of ports of each network of a cloud.
	networkPorts = 10
	// WaitingPorts is the number of ports of a cloud that wait for their L2 agents.
	WaitingPorts = 100
	// leaseHosts is the maximum number of reservable hosts of a cloud.
	leaseHosts = 500
	// BigProject is the project that has a tenth of the ports of a cloud.
	BigProject = "big"
)

// Networks returns the number of networks of a cloud of size n.
func Networks(n int) int { return (n + networkPorts - 1) / networkPorts }

// PendingLeases returns the number of pending leases of a cloud of size n.
func PendingLeases(n int) int { return n / 10 }

// The kinds of objects of a cloud. The numbers of providers, consumers and ports begin with 1, the others
// with 0.
const (
	Provider     = "provider"
	Aggregate    = "aggregate" // of 50 providers
	Consumer     = "consumer"
	Network      = "network"
	Port         = "port"
	PastLease    = "TERMINATED"
	PendingLease = "PENDING"
)

// ID returns the UUID of an object of a cloud.
func ID(kind string, n int) string {
	return uuid.UUID(md5.Sum([]byte(kind + strconv.Itoa(n)))).String()
}

// PortAttributes are attributes of a port of a cloud.
type PortAttributes struct{ ID, Network, Project, Host, Status string }

// PortOf returns the attributes of the n-th port of a cloud.
func PortOf(n int) PortAttributes {
	status := "ACTIVE"
	if n <= WaitingPorts {
		status = "DOWN"
	}
	return PortAttributes{
		ID:      ID(Port, n),
		Network: ID(Network, (n-1)/networkPorts),
		Project: Project(n),
		Host:    fmt.Sprint("host-", n%agentHosts),
		Status:  status,
	}
}

// Project returns the project of the n-th port, consumer or lease of a cloud.
func Project(n int) string {
	if n%10 == 0 {
		return BigProject
	}
	return fmt.Sprint("project-", n/100)
}

// projectSQL is Project in SQL.
const projectSQL = `case when n % 10 = 0 then 'big' else 'project-' || n / 100 end`

// cloudTraits is the number of traits of each provider of a cloud.
const cloudTraits = 10

// Cloud returns a dataset of n resource providers, each with a consumer, n completed journal entries of
// ports, n leases that have ended, and the first ports and pending leases of the cloud. What else a cloud has
// does not grow with n: reservable hosts and networking agents.
func Cloud(n, ports int) harness.Dataset {
	hosts := min(n, leaseHosts)
	return harness.Dataset{Name: fmt.Sprint("cloud_", n), SQL: []string{
		`set session_replication_role = replica`, // no triggers and no foreign key checks
		insertProviders(n),
		insertInventories(serverClasses, allocated),
		insertTraits(cloudTraits),
		`insert into provider_aggregate (provider_id, aggregate) select id, md5('aggregate' || id / 50)::uuid::text from provider`,
		fmt.Sprintf(`
			insert into consumer (id, uuid, project, user_id, type)
			overriding system value
			select n, md5('consumer' || n)::uuid::text, %s, 'ann', 'INSTANCE'
			from generate_series(1, %d) as n;
			select setval(pg_get_serial_sequence('consumer', 'id'), %[2]d)`, projectSQL, n),
		`insert into generation_change (actor, cause, consumer, consumer_to, provider, provider_from, provider_to)
			select 'nova', 'allocations', k.uuid, 1, p.uuid, 0, 1 from consumer k join provider p on p.id = k.id`,
		insertL2Agents,
		insertNetworks(n),
		insertPorts(1, ports),
		`insert into block (object_id, entity, host, since) select id, 'L2', host, now() from port where status = 'DOWN'`,
		CompletedEntries(n),
		`insert into resource_class (name) values ('CUSTOM_PHYSICAL_HOST') on conflict do nothing`,
		insertHosts(hosts),
		insertInventories(hostClass, 0),
		pastLeases(n, projectSQL),
		pendingLeases(0, PendingLeases(ports), hosts, projectSQL),
		// the creation of a port and of a network counts those of its project
		`insert into quota (project, resource, amount)
			select p, r, 10000000 from unnest(array['bench', 'big']) as p, unnest(array['port', 'network']) as r`,
		fmt.Sprintf(`
			insert into allocation (consumer_id, provider_id, class_id, amount)
			select k.id, i.provider_id, i.class_id, %d
			from consumer k
			join inventory i on i.provider_id = k.id
			where i.used > 0`, allocated),
	}}
}

// insertNetworks returns SQL that inserts the networks of n ports, each with a subnet, and four DHCP agents,
// one for each network.
func insertNetworks(n int) string {
	return fmt.Sprintf(`
		insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
		select md5('dhcp' || n)::uuid, 'DHCP agent', 'net-' || n, 'bench', 'N/A', '{}', now() + interval '1 day'
		from generate_series(0, 3) as n;
		insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type, segment)
		select md5('network' || n)::uuid, 'project-' || n / 10, 'network-' || n, '', true, false, false, 1450, true, 'vxlan', n + 1
		from generate_series(0, %[1]d - 1) as n;
		select setval('network_vni', %[1]d);
		insert into subnet (id, network_id, project, name, description, cidr, gateway, dhcp, pools, dns, routes, ra_mode, address_mode)
		select md5('subnet' || n)::uuid, md5('network' || n)::uuid, 'project-' || n / 10, 'subnet-' || n, '', '10.0.0.0/20', '10.0.0.1', true,
			'[{"start":"10.0.0.2","end":"10.0.15.254"}]', '{}', '[]', '', ''
		from generate_series(0, %[1]d - 1) as n;
		insert into dhcp_binding (network_id, agent_id)
		select md5('network' || n)::uuid, md5('dhcp' || n %% 4)::uuid from generate_series(0, %[1]d - 1) as n`, Networks(n))
}

// Rest returns a dataset of the other ports and pending leases of a cloud of size n.
func Rest(n, ports int) harness.Dataset {
	return harness.Dataset{Name: "rest", SQL: []string{
		`set session_replication_role = replica`,
		insertPorts(ports+1, n),
		pendingLeases(PendingLeases(ports), PendingLeases(n), min(n, leaseHosts), projectSQL),
	}}
}

// insertPorts returns SQL that inserts ports of a cloud with their addresses.
func insertPorts(first, last int) string {
	return fmt.Sprintf(`
		insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
		select md5('port' || n)::uuid, md5('network' || (n - 1) / %[3]d)::uuid, %[4]s, 'port-' || n, '', true,
			('02' || lpad(to_hex(n), 10, '0'))::macaddr, md5('consumer' || n)::uuid::text, 'compute:nova',
			case when n <= %[5]d then 'DOWN' else 'ACTIVE' end, 'host-' || n %% %[6]d, 'normal', '{}', 'ovs', true
		from generate_series(%[1]d, %[2]d) as n;
		insert into port_address (subnet_id, address, port_id, position)
		select md5('subnet' || (n - 1) / %[3]d)::uuid, '10.0.1.0'::inet + (n - 1) %% %[3]d, md5('port' || n)::uuid, 0
		from generate_series(%[1]d, %[2]d) as n`, first, last, networkPorts, projectSQL, WaitingPorts, agentHosts)
}
