package main

// The nouns of the API. The words of the attributes are the API's.
var (
	networks = &noun{
		name: "network", path: "/networking/v2.0/networks", one: "network", many: "networks",
		id: "id", label: "name", filter: "name", isID: isUUID,
		columns: []string{"id", "name", "status", "subnets", "admin_state_up"},
		fields: []field{
			{flag: "name", key: "name", help: "new name", as: text, only: "set"},
			{flag: "description", key: "description", help: "for people", as: text},
			{flag: "admin-up", key: "admin_state_up", help: "true or false", as: yesno},
			{flag: "shared", key: "shared", help: "true or false", as: yesno},
			{flag: "mtu", key: "mtu", help: "largest packet", as: number, only: "create"},
			{flag: "project", key: "project_id", help: "owner, for admins", as: text, only: "create"},
		},
	}
	subnets = &noun{
		name: "subnet", path: "/networking/v2.0/subnets", one: "subnet", many: "subnets",
		id: "id", label: "name", filter: "name", isID: isUUID,
		columns: []string{"id", "name", "network_id", "cidr", "gateway_ip", "enable_dhcp"},
		fields: []field{
			{flag: "name", key: "name", help: "new name", as: text, only: "set"},
			{flag: "network", key: "network_id", help: "network, by name or ID", as: ref(networks), only: "create"},
			{flag: "cidr", key: "cidr", help: "its addresses, as 10.0.0.0/24", as: text, only: "create"},
			{flag: "gateway", key: "gateway_ip", help: "gateway's address, or none", as: nullable},
			{flag: "dhcp", key: "enable_dhcp", help: "true or false", as: yesno},
			{flag: "dns", key: "dns_nameservers", help: "name server, several by commas", as: list, many: true},
			{flag: "pool", key: "allocation_pools", help: "START-END of addresses to give out; may be repeated", as: pools, many: true},
			{flag: "description", key: "description", help: "for people", as: text},
			{flag: "project", key: "project_id", help: "owner, for admins", as: text, only: "create"},
		},
	}
	ports = &noun{
		name: "port", path: "/networking/v2.0/ports", one: "port", many: "ports",
		id: "id", label: "name", filter: "name", isID: isUUID,
		columns: []string{"id", "name", "status", "binding:host_id", "device_owner", "fixed_ips"},
		fields: []field{
			{flag: "name", key: "name", help: "new name", as: text, only: "set"},
			{flag: "network", key: "network_id", help: "network, by name or ID", as: ref(networks), only: "create"},
			{flag: "host", key: "binding:host_id", help: "host to bind it to; empty unbinds", as: text},
			{flag: "device", key: "device_id", help: "who uses it, a server's UUID", as: text},
			{flag: "device-owner", key: "device_owner", help: "as compute:nova", as: text},
			{flag: "fixed-ip", key: "fixed_ips", help: "subnet=NAME,address=IP, or none; may be repeated", as: fixedIPs, many: true},
			{flag: "mac", key: "mac_address", help: "its MAC address", as: text},
			{flag: "vnic-type", key: "binding:vnic_type", help: "normal, direct …", as: text},
			{flag: "profile", key: "binding:profile", help: "JSON for the binding", as: literal},
			{flag: "admin-up", key: "admin_state_up", help: "true or false", as: yesno},
			{flag: "description", key: "description", help: "for people", as: text},
			{flag: "project", key: "project_id", help: "owner, for admins", as: text, only: "create"},
		},
	}
	agents = &noun{
		name: "agent", path: "/networking/v2.0/agents", one: "agent", many: "agents",
		id: "id", label: "host", filter: "host", isID: isUUID,
		columns: []string{"id", "agent_type", "host", "alive", "admin_state_up", "heartbeat_timestamp", "berth:held", "berth:awaited"},
		fields: []field{
			{flag: "admin-up", key: "admin_state_up", help: "true or false", as: yesno, only: "set"},
			{flag: "description", key: "description", help: "for people", as: text, only: "set"},
		},
	}
	leases = &noun{
		name: "lease", path: "/reservation/v1/leases", one: "lease", many: "leases",
		id: "id", label: "name", isID: isUUID,
		columns: []string{"id", "name", "status", "start_date", "end_date", "degraded"},
		fields: []field{
			{flag: "name", key: "name", help: "new name", as: text, only: "set"},
			{flag: "start", key: "start_date", help: dateHelp, as: instant},
			{flag: "end", key: "end_date", help: "as --start", as: instant},
			{flag: "before-end", key: "before_end_date", help: "when to act before the end, as --start", as: instant},
			{flag: "reservations", key: "reservations", help: "JSON list, for several or other than one of hosts", as: literal},
		},
	}
	hosts = &noun{
		name: "host", path: "/reservation/v1/os-hosts", one: "host", many: "hosts",
		id: "id", label: "hypervisor_hostname", isID: digits.MatchString,
		columns: []string{"id", "hypervisor_hostname", "reservable", "vcpus", "memory_mb", "local_gb"},
	}
	providers = &noun{
		name: "provider", path: "/placement/resource_providers", many: "resource_providers",
		id: "uuid", label: "name", filter: "name", isID: isUUID,
		columns: []string{"uuid", "name", "generation", "parent_provider_uuid"},
		fields: []field{
			{flag: "name", key: "name", help: "new name", as: text, only: "set"},
			{flag: "uuid", key: "uuid", help: "its UUID, else a new one", as: text, only: "create"},
		},
	}
	runs = &noun{
		name: "odl", path: "/journal/v1/runs", one: "run", many: "runs",
		id: "id", label: "id", isID: digits.MatchString,
		columns: []string{"id", "kind", "state", "actor", "reason", "note", "created_at", "finished_at"},
	}
	entries = &noun{
		name: "journal", path: "/journal/v1/entries", one: "entry", many: "entries",
		id: "seq", label: "seq", isID: digits.MatchString,
		columns: []string{"seq", "operation", "object_type", "object_id", "name", "state", "attempts", "failures", "last_error"},
	}
)

// groups are the words below which commands hang.
var groups = map[string]string{
	"network":    "Networks",
	"subnet":     "Subnets: a network's addresses",
	"port":       "Ports: places on a network, ACTIVE when every agent has done its part",
	"agent":      "Agents: what runs on the hosts",
	"lease":      "Leases: reservations from one second to another",
	"host":       "Hosts that can be leased",
	"allocation": "Allocations: what a consumer holds of providers",
	"aggregate":  "Aggregates: sets of providers",
	"placement":  "What comes from an older Placement",
	"provider":   "Resource providers and their inventories",
	"journal":    "The journal that mirrors networking to the controller",
	"odl":        "The controller: is it a faithful mirror, and how it becomes one",
}

func nounOf(name string) *noun {
	for _, n := range []*noun{networks, subnets, ports, agents, leases, hosts, providers} {
		if n.name == name {
			return n
		}
	}
	return nil
}
