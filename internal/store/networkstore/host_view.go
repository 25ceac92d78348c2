package networkstore

import "berth/internal/store/db"

// Fields of a db.Condition that select what the agents of a host need. Their values are names of hosts.
const (
	FieldServingHost  = "serving_host"   // see OnHost
	FieldDHCPHost     = "dhcp_host"      // see ServedByDHCPOf
	fieldRemoteOnHost = "remote_on_host" // see RemoteGroupsOf
)

// The SQL of these fields; %[1]s stands for the names of the hosts.
const (
	// PortsOnHost selects the ports that have a binding to the host, also an inactive binding of a migration.
	PortsOnHost = `select p.id from port p where p.host = any(%[1]s) union select b.port_id from port_binding b where b.host = any(%[1]s)`
	// NetworksOfDHCPHost selects the networks that are scheduled to the DHCP agent on the host.
	NetworksOfDHCPHost = `select d.network_id from dhcp_binding d join agent a on a.id = d.agent_id where a.host = any(%[1]s)`
	// networksOnHost selects the networks of the ports on the host, and the networks of the DHCP agent on the
	// host.
	networksOnHost = `select p.network_id from port p where p.id in (` + PortsOnHost + `) union ` + NetworksOfDHCPHost
	// groupsOnHost selects the security groups of the ports on the host.
	groupsOnHost = `select unnest(p.security_groups) from port p where p.id in (` + PortsOnHost + `)`
	// remoteGroupsOnHost selects the remote groups of the rules that the host applies.
	remoteGroupsOnHost = `select r.remote_group from security_group_rule r where r.remote_group is not null and r.group_id in (` + groupsOnHost + `)`
)

// OnHost returns the condition for the objects that the L2 agents of a host need for the ports on this host:
// these ports, their networks and subnets, their security groups and the rules of these groups. The networks
// and subnets of the host's DHCP agent belong to them, too.
func OnHost(host string) db.Condition {
	return db.Condition{Field: FieldServingHost, In: []string{host}}
}

// ServedByDHCPOf returns the condition for the networks that are scheduled to the DHCP agent on a host, and
// for the ports on these networks.
func ServedByDHCPOf(host string) db.Condition {
	return db.Condition{Field: FieldDHCPHost, In: []string{host}}
}

// RemoteGroupsOf returns the condition for the security groups whose members the L2 agents of a host need,
// because a rule of a port on this host names the group as its remote group.
func RemoteGroupsOf(host string) db.Condition {
	return db.Condition{Field: fieldRemoteOnHost, In: []string{host}}
}
