package neutron

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

type networkChange = network.NetworkChange

func networks(s *portstore.Store) resource[network.Network, networkChange] {
	return resource[network.Network, networkChange]{
		singular:     "network",
		notFoundType: string(network.NetworkNotFound),
		attributes:   networkAttributes,
		quota:        s.Quota,
		project:      func(c networkChange) *string { return c.Project },
		id:           func(n network.Network) uuid.UUID { return n.ID },
		view:         viewNetwork,
		revision:     func(n network.Network) int64 { return n.Revision },
		tags: tagAccess[network.Network, networkChange]{
			read:  func(n network.Network) []string { return n.Tags },
			write: func(c *networkChange, tags *[]string) { c.Tags = tags },
		},
		list:   s.Networks,
		ids:    s.NetworkIDs,
		create: s.CreateNetworks,
		update: s.UpdateNetwork,
		remove: s.DeleteNetwork,
		target: targetRule[network.Network]{of: targetOfNetwork, outside: func(project string) policy.Target {
			t := outside(project)
			t["shared"], t["router:external"] = false, false
			return t
		}},
		prepareCreate: func(r *http.Request, c *networkChange, rules []string) error {
			t := newOwner(r, c.Project)
			t["shared"], t["router:external"] = c.Shared != nil && *c.Shared, c.External != nil && *c.External
			if err := accessOf(r).require(rules, t, nil); err != nil {
				return err
			}
			if err := checkMTUForMember(r, network.Network{}, *c); err != nil {
				return err
			}
			return fillProject(r, &c.Project)
		},
		authorizeChange: func(r *http.Request, n network.Network, c *networkChange) error {
			if c == nil {
				return nil
			}
			return checkMTUForMember(r, n, *c)
		},
	}
}

// checkMTUForMember returns a fault if a caller who is neither an administrator nor a service gives a network
// an MTU that is too small for IPv6. A DHCP agent that also serves metadata needs an IPv6 address on each
// network. If the kernel of its host refuses this address, the agent synchronizes all its networks again
// and again.
func checkMTUForMember(r *http.Request, before network.Network, c networkChange) error {
	if c.MTU == nil || *c.MTU == before.MTU || accessOf(r).mayChooseProject() {
		return nil
	}
	return network.CheckMTUForMember(*c.MTU)
}

// providerAttributes describe the physical realization of a network.
var providerAttributes = []attribute.Definition[network.Network, networkChange]{
	{
		Name:           "provider:network_type",
		SettableOn:     attribute.OnCreate,
		AdminOnlyWrite: true,
		AdminOnlyRead:  true,
		Set:            attribute.Into(func(c *networkChange) **string { return &c.Type }, attribute.Line(32)),
		FilterField:    "type",
	},
	{
		Name:           "provider:physical_network",
		SettableOn:     attribute.OnCreate,
		AdminOnlyWrite: true,
		AdminOnlyRead:  true,
		Set: attribute.NullIsAbsent(
			attribute.Into(func(c *networkChange) **string { return &c.PhysicalNetwork }, attribute.Line(64)),
		),
		FilterField: "physical_network",
	},
	{
		Name:           "provider:segmentation_id",
		SettableOn:     attribute.OnCreate,
		AdminOnlyWrite: true,
		AdminOnlyRead:  true,
		Set: attribute.NullIsAbsent(
			attribute.Into(func(c *networkChange) **int { return &c.Segment }, attribute.Int(1, 1<<24-1)),
		),
		FilterField: "segment",
		FilterValue: attribute.FilterInt,
	},
}

var networkAttributes = []attribute.Definition[network.Network, networkChange]{
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "project_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *networkChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "tenant_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *networkChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "name",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *networkChange) **string { return &c.Name }, attribute.Text(255)),
		FilterField: "name",
		Sortable:    true,
	},
	{
		Name:       "description",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *networkChange) **string { return &c.Description },
			attribute.Text(255),
		),
		FilterField: "description",
	},
	{
		Name:        "admin_state_up",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *networkChange) **bool { return &c.AdminUp }, attribute.Bool),
		FilterField: "admin_up",
		FilterValue: attribute.FilterBool,
		Sortable:    true,
	},
	{
		Name:           "shared",
		SettableOn:     attribute.OnWrite,
		AdminOnlyWrite: true,
		FalseAllowed:   true,
		Set:            attribute.Into(func(c *networkChange) **bool { return &c.Shared }, attribute.Bool),
		FilterField:    "shared",
		FilterValue:    attribute.FilterBool,
	},
	{
		Name:           "router:external",
		SettableOn:     attribute.OnWrite,
		AdminOnlyWrite: true,
		FalseAllowed:   true,
		Set:            attribute.Into(func(c *networkChange) **bool { return &c.External }, attribute.Bool),
		FilterField:    "external",
		FilterValue:    attribute.FilterBool,
	},
	{
		Name:        "mtu",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *networkChange) **int { return &c.MTU }, attribute.Int(0, 65535)),
		FilterField: "mtu",
		FilterValue: attribute.FilterInt,
		Sortable:    true,
	},
	{
		Name:        "port_security_enabled",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *networkChange) **bool { return &c.PortSecurity }, attribute.Bool),
		FilterField: "port_security",
		FilterValue: attribute.FilterBool,
	},
	providerAttributes[0], providerAttributes[1], providerAttributes[2],
	{
		Name:           "segments",
		SettableOn:     attribute.OnCreate,
		AdminOnlyWrite: true,
		AdminOnlyRead:  true,
		Set:            oneSegment,
	},
	{
		Name:           "is_default",
		SettableOn:     attribute.OnWrite,
		AdminOnlyWrite: true,
		FalseAllowed:   true,
		Set:            neverDefault,
	},
	{
		Name:       "availability_zone_hints",
		SettableOn: attribute.OnCreate,
		Set:        attribute.Into(func(c *networkChange) **[]string { return &c.ZoneHints }, zoneHints),
	},
	{Name: "status", FilterField: "status", Sortable: true},
	{Name: "revision_number", FilterField: "revision", FilterValue: attribute.FilterInt},
	{
		Name: "subnets",
	}, {Name: "availability_zones"}, {Name: "ipv4_address_scope"}, {Name: "ipv6_address_scope"},
	{Name: "tags"}, {Name: "created_at"}, {Name: "updated_at"},
}

// oneSegment reads the provider attributes from a list of segments. oneSegment refuses a list with several
// segments, because a network in berth has exactly one segment.
func oneSegment(c *networkChange, raw json.RawMessage) error {
	list, err := attribute.List(func(raw json.RawMessage) (map[string]json.RawMessage, error) {
		return attribute.Dict(raw, "provider:network_type",
			"provider:physical_network", "provider:segmentation_id")
	})(raw)
	switch {
	case err != nil:
		return err
	case len(list) != 1 || list[0]["provider:network_type"] == nil:
		return errors.New("a network has one segment, with a provider:network_type")
	case c.Type != nil || c.PhysicalNetwork != nil || c.Segment != nil:
		return network.Faultf(network.SegmentsAndProvider, "Segments and provider values cannot both be set.")
	}
	for _, a := range providerAttributes {
		if v, ok := list[0][a.Name]; ok {
			if err := a.Set(c, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// neverDefault reads is_default and accepts only the value false. In Neutron, the external network with
// is_default true is the one to which Neutron connects the routers that it creates automatically, but berth
// has no routers.
func neverDefault(_ *networkChange, raw json.RawMessage) error {
	isDefault, err := attribute.Bool(raw)
	if err == nil && isDefault {
		err = errors.New("no network can be the default network, because berth has no routers")
	}
	return err
}

func viewNetwork(n network.Network, requester *access) object {
	o := object{
		"id":                      n.ID,
		"name":                    n.Name,
		"description":             n.Description,
		"project_id":              n.Project,
		"tenant_id":               n.Project,
		"admin_state_up":          n.AdminUp,
		"status":                  network.Active,
		"shared":                  n.Shared,
		"router:external":         n.External,
		"mtu":                     n.MTU,
		"port_security_enabled":   n.PortSecurity,
		"subnets":                 n.Subnets,
		"availability_zone_hints": n.ZoneHints,
		"availability_zones":      n.Zones,
		"ipv4_address_scope":      nil,
		"ipv6_address_scope":      nil,
		"is_default":              false,
	}
	provider := []any{n.Type, nullIfEmpty(n.PhysicalNetwork), n.Segment}
	for i, a := range providerAttributes {
		if requester.visible("get_network:"+a.Name, func() policy.Target { return targetOfNetwork(n) }) {
			o[a.Name] = provider[i]
		}
	}
	addStandardAttributes(o, n.Revision, n.CreatedAt, n.UpdatedAt, n.Tags)
	return o
}

// addStandardAttributes adds the revision, the tags and the timestamps.
func addStandardAttributes(o object, revision int64, created, updated time.Time, tags []string) {
	const layout = "2006-01-02T15:04:05Z"
	o["revision_number"], o["tags"] = revision, tags
	o["created_at"], o["updated_at"] = created.UTC().Format(layout), updated.UTC().Format(layout)
}

func nullIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}
