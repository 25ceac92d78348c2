package neutron

import (
	"net/http"
	"net/netip"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

type subnetChange = network.SubnetChange

func subnets(s *store.Store) resource[network.Subnet, subnetChange] {
	return resource[network.Subnet, subnetChange]{
		one: "subnet", missing: string(network.SubnetNotFound), attributes: subnetAttributes,
		id: func(n network.Subnet) uuid.UUID { return n.ID }, view: viewSubnet,
		revision: func(n network.Subnet) int64 { return n.Revision },
		tags: tagging[network.Subnet, subnetChange]{of: func(n network.Subnet) []string { return n.Tags },
			set: func(c *subnetChange, tags *[]string) { c.Tags = tags }},
		list: s.Subnets, create: s.CreateSubnets, update: s.UpdateSubnet, remove: s.DeleteSubnet,
		prepare: func(r *http.Request, c *subnetChange) error {
			n, err := onNetwork(r, s, *c.Network)
			if err != nil {
				return err
			}
			if who := caller(r); !who.Admin() && n.Project != who.Project {
				return forbidden("create_subnet")
			}
			return own(r, &c.Project, "create_subnet")
		},
		may: func(r *http.Request, n network.Subnet, c *subnetChange) error {
			return mayChange(r, n.Project, c, "subnet")
		},
	}
}

var subnetAttributes = []attribute[subnetChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "network_id", on: onCreate | required, set: as(func(c *subnetChange) **uuid.UUID { return &c.Network }, id), field: "network", read: asUUID, sorts: true},
	{name: "ip_version", on: onCreate | required, set: as(func(c *subnetChange) **int { return &c.IPVersion }, ipVersion), field: "ip_version", read: asInt, sorts: true},
	{name: "cidr", on: onCreate, set: as(func(c *subnetChange) **netip.Prefix { return &c.CIDR }, cidr), field: "cidr", read: asCIDR, sorts: true},
	{name: "project_id", on: onCreate, set: project(func(c *subnetChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "tenant_id", on: onCreate, set: project(func(c *subnetChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "name", on: anytime, set: as(func(c *subnetChange) **string { return &c.Name }, text(255)), field: "name", sorts: true},
	{name: "description", on: anytime, set: as(func(c *subnetChange) **string { return &c.Description }, text(255)), field: "description"},
	{name: "gateway_ip", on: anytime, set: as(func(c *subnetChange) **netip.Addr { return &c.Gateway }, addressOrNone), field: "gateway", read: asIPText, sorts: true},
	{name: "allocation_pools", on: anytime, set: as(func(c *subnetChange) **[]network.Pool { return &c.Pools }, listOf(pool))},
	{name: "enable_dhcp", on: anytime, set: as(func(c *subnetChange) **bool { return &c.DHCP }, boolean), field: "dhcp", read: asBool, sorts: true},
	{name: "dns_nameservers", on: anytime, set: as(func(c *subnetChange) **[]string { return &c.DNS }, orNone(listOf(nameserver)))},
	{name: "host_routes", on: anytime, set: as(func(c *subnetChange) **[]network.Route { return &c.Routes }, orNone(listOf(hostRoute)))},
	{name: "ipv6_ra_mode", on: onCreate, set: as(func(c *subnetChange) **string { return &c.RAMode }, ipv6Mode), field: "ra_mode", sorts: true},
	{name: "ipv6_address_mode", on: onCreate, set: as(func(c *subnetChange) **string { return &c.AddressMode }, ipv6Mode), field: "address_mode", sorts: true},
	{name: "subnetpool_id", on: onCreate, set: nothing[subnetChange], field: "subnetpool", sorts: true},
	{name: "service_types", on: anytime, set: nothing[subnetChange]},
	{name: "revision_number", field: "revision", read: asInt},
	{name: "tags"}, {name: "created_at"}, {name: "updated_at"},
}

var ipv6Mode = oneOf("dhcpv6-stateful", network.Stateless, network.SLAAC)

func viewSubnet(s network.Subnet, _ identity.Caller) object {
	o := object{
		"id": s.ID, "network_id": s.Network, "name": s.Name, "description": s.Description, "project_id": s.Project,
		"tenant_id": s.Project, "ip_version": s.Version(), "cidr": s.CIDR, "gateway_ip": nil, "allocation_pools": s.Pools,
		"enable_dhcp": s.DHCP, "dns_nameservers": s.DNS, "host_routes": s.Routes, "ipv6_ra_mode": orNull(s.RAMode),
		"ipv6_address_mode": orNull(s.AddressMode), "subnetpool_id": nil, "service_types": []string{},
	}
	if s.Gateway.IsValid() {
		o["gateway_ip"] = s.Gateway
	}
	stamp(o, s.Revision, s.CreatedAt, s.UpdatedAt, s.Tags)
	return o
}
