package neutron

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

type subnetChange = network.SubnetChange

func subnets(s *portstore.Store) resource[network.Subnet, subnetChange] {
	return resource[network.Subnet, subnetChange]{
		singular:     "subnet",
		notFoundType: string(network.SubnetNotFound),
		attributes:   subnetAttributes,
		quota:        s.Quota,
		project:      func(c subnetChange) *string { return c.Project },
		id:           func(n network.Subnet) uuid.UUID { return n.ID },
		view:         viewSubnet,
		revision:     func(n network.Subnet) int64 { return n.Revision },
		tags: tagAccess[network.Subnet, subnetChange]{read: func(n network.Subnet) []string { return n.Tags },
			write: func(c *subnetChange, tags *[]string) { c.Tags = tags }},
		list:   s.Subnets,
		ids:    s.SubnetIDs,
		create: s.CreateSubnets,
		update: s.UpdateSubnet,
		remove: s.DeleteSubnet,
		target: targetRule[network.Subnet]{
			of: func(n network.Subnet) policy.Target { return owned(n.Project) },
			outside: func(project string) policy.Target {
				t := outside(project)
				t["network:shared"] = false
				return t
			},
			parent:    func(n network.Subnet) uuid.UUID { return n.Network },
			addParent: networkParents(s),
		},
		prepareCreate: func(r *http.Request, c *subnetChange, rules []string) error {
			n, err := findNetwork(r, s, *c.Network)
			if err != nil {
				return err
			}
			t := newOwner(r, c.Project)
			addNetwork(t, n)
			if err := accessOf(r).require(rules, t, nil); err != nil {
				return err
			}
			return fillProject(r, &c.Project)
		},
	}
}

var subnetAttributes = []attribute.Definition[network.Subnet, subnetChange]{
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "network_id",
		SettableOn:  attribute.OnCreate | attribute.Required,
		Set:         attribute.Into(func(c *subnetChange) **uuid.UUID { return &c.Network }, attribute.UUID),
		FilterField: "network",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "ip_version",
		SettableOn:  attribute.OnCreate | attribute.Required,
		Set:         attribute.Into(func(c *subnetChange) **int { return &c.IPVersion }, attribute.IPVersion),
		FilterField: "ip_version",
		FilterValue: attribute.FilterInt,
		Sortable:    true,
	},
	{
		Name:        "cidr",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.Into(func(c *subnetChange) **netip.Prefix { return &c.CIDR }, attribute.CIDR),
		FilterField: "cidr",
		FilterValue: attribute.FilterCIDR,
		Sortable:    true,
	},
	{
		Name:        "project_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *subnetChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "tenant_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *subnetChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "name",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *subnetChange) **string { return &c.Name }, attribute.Text(255)),
		FilterField: "name",
		Sortable:    true,
	},
	{
		Name:       "description",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *subnetChange) **string { return &c.Description },
			attribute.Text(255),
		),
		FilterField: "description",
	},
	{
		Name:       "gateway_ip",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *subnetChange) **netip.Addr { return &c.Gateway },
			attribute.AddressOrNone,
		),
		FilterField: "gateway",
		FilterValue: attribute.FilterIP,
		Sortable:    true,
	},
	{
		Name:       "allocation_pools",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *subnetChange) **[]network.Pool { return &c.Pools },
			attribute.List(pool),
		),
	},
	{
		Name:        "enable_dhcp",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *subnetChange) **bool { return &c.DHCP }, attribute.Bool),
		FilterField: "dhcp",
		FilterValue: attribute.FilterBool,
		Sortable:    true,
	},
	{
		Name:       "dns_nameservers",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *subnetChange) **[]string { return &c.DNS },
			attribute.NullIsEmptyList(attribute.List(nameserver)),
		),
	},
	{
		Name:       "host_routes",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *subnetChange) **[]network.Route { return &c.Routes },
			attribute.NullIsEmptyList(attribute.List(hostRoute)),
		),
	},
	{
		Name:        "ipv6_ra_mode",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.Into(func(c *subnetChange) **string { return &c.RAMode }, ipv6Mode),
		FilterField: "ra_mode",
		Sortable:    true,
	},
	{
		Name:        "ipv6_address_mode",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.Into(func(c *subnetChange) **string { return &c.AddressMode }, ipv6Mode),
		FilterField: "address_mode",
		Sortable:    true,
	},
	{
		Name:        "subnetpool_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.OnlyEmpty[subnetChange],
		FilterField: "subnetpool",
		Sortable:    true,
	},
	{
		Name:       "service_types",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *subnetChange) **[]string { return &c.ServiceTypes },
			attribute.NullIsEmptyList(attribute.Distinct(attribute.List(serviceType))),
		),
	},
	{Name: "revision_number", FilterField: "revision", FilterValue: attribute.FilterInt},
	{
		Name:        "shared",
		FilterField: "shared",
		FilterValue: attribute.FilterBool,
	}, // only a filter: selects the subnets whose network is shared
	{Name: "tags"}, {Name: "created_at"}, {Name: "updated_at"},
}

var ipv6Mode = attribute.OneOf("dhcpv6-stateful", network.Stateless, network.SLAAC)

func viewSubnet(s network.Subnet, _ *access) object {
	o := object{
		"id":                s.ID,
		"network_id":        s.Network,
		"name":              s.Name,
		"description":       s.Description,
		"project_id":        s.Project,
		"tenant_id":         s.Project,
		"ip_version":        s.Version(),
		"cidr":              s.CIDR,
		"gateway_ip":        nil,
		"allocation_pools":  s.Pools,
		"enable_dhcp":       s.DHCP,
		"dns_nameservers":   s.DNS,
		"host_routes":       s.Routes,
		"ipv6_ra_mode":      nullIfEmpty(s.RAMode),
		"ipv6_address_mode": nullIfEmpty(s.AddressMode),
		"subnetpool_id":     nil,
		"service_types":     s.ServiceTypes,
	}
	if s.Gateway.IsValid() {
		o["gateway_ip"] = s.Gateway
	}
	addStandardAttributes(o, s.Revision, s.CreatedAt, s.UpdatedAt, s.Tags)
	return o
}

func pool(raw json.RawMessage) (p network.Pool, err error) {
	m, err := attribute.Dict(raw, "start", "end")
	if err != nil {
		return p, err
	}
	if len(m) != 2 {
		return p, fmt.Errorf("an allocation pool must have a start and an end")
	}
	if p.Start, err = attribute.Address(m["start"]); err != nil {
		return p, err
	}
	p.End, err = attribute.Address(m["end"])
	return p, err
}

func hostRoute(raw json.RawMessage) (r network.Route, err error) {
	m, err := attribute.Dict(raw, "destination", "nexthop")
	if err != nil {
		return r, err
	}
	if len(m) != 2 {
		return r, fmt.Errorf("a host route must have a destination and a nexthop")
	}
	var destination string
	if json.Unmarshal(m["destination"], &destination) != nil {
		return r, fmt.Errorf("'%s' is not a valid IP subnet", attribute.Excerpt(m["destination"]))
	}
	r.Destination, err = netip.ParsePrefix(destination)
	switch {
	case err != nil || r.Destination.Addr().Is4In6():
		return r, fmt.Errorf("'%s' is not a valid IP subnet", attribute.Excerpt(m["destination"]))
	case r.Destination != r.Destination.Masked(): // the hosts' kernels refuse such a route
		return r, fmt.Errorf("'%s' isn't a recognized IP subnet cidr, '%s' is recommended",
			r.Destination, r.Destination.Masked())
	case r.Destination.Addr().IsLoopback():
		return r, fmt.Errorf("'%s' is a loopback subnet, to which no route leads", r.Destination)
	}
	r.NextHop, err = attribute.Address(m["nexthop"])
	return r, err
}

// ownerPrefixes are the prefixes of the device owners that can be the service type of a subnet. Because of an
// error in validate_subnet_service_types, neutron-lib also accepts every text that begins with one of the
// characters of "compute:". Clients depend on this error, so berth accepts such texts too.
var ownerPrefixes = append(strings.Split("compute:", ""), "network:", "neutron:", "baremetal:")

// serviceType reads a service type of a subnet. A service type is a device
// owner; ports with this device owner get addresses from the subnet.
func serviceType(raw json.RawMessage) (string, error) {
	s, err := attribute.Text(255)(raw)
	switch {
	case err != nil:
		err = network.Faultf(network.ServiceTypeNoText, "Subnet service type %s is not a string.",
			attribute.Excerpt(raw))
	case !network.IsSingleLine(s),
		!slices.ContainsFunc(ownerPrefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) }):
		err = network.Faultf(network.InvalidServiceType,
			"Subnet service type %s does not correspond to a valid device owner.",
			attribute.Excerpt(raw))
	}
	return s, err
}

// nameserver reads the IP address of a DNS server and returns the address as text.
func nameserver(raw json.RawMessage) (string, error) {
	a, err := attribute.Address(raw)
	return a.String(), err
}
