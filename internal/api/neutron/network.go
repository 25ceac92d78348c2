package neutron

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

type networkChange = network.NetworkChange

func networks(s *store.Store) resource[network.Network, networkChange] {
	return resource[network.Network, networkChange]{
		one: "network", missing: string(network.NetworkNotFound), attributes: networkAttributes,
		id: func(n network.Network) uuid.UUID { return n.ID }, view: viewNetwork,
		revision: func(n network.Network) int64 { return n.Revision },
		tags: tagging[network.Network, networkChange]{of: func(n network.Network) []string { return n.Tags },
			set: func(c *networkChange, tags *[]string) { c.Tags = tags }},
		list: s.Networks, create: s.CreateNetworks, update: s.UpdateNetwork, remove: s.DeleteNetwork,
		prepare: func(r *http.Request, c *networkChange) error { return own(r, &c.Project, "create_network") },
		may: func(r *http.Request, n network.Network, c *networkChange) error {
			return mayChange(r, n.Project, c, "network")
		},
	}
}

// providerAttributes are what a network is on the wire.
var providerAttributes = []attribute[networkChange]{
	{name: "provider:network_type", on: onCreate, admin: true, veil: true, set: as(func(c *networkChange) **string { return &c.Type }, text(32)), field: "type"},
	{name: "provider:physical_network", on: onCreate, admin: true, veil: true, set: orAbsent(as(func(c *networkChange) **string { return &c.PhysicalNetwork }, text(64))), field: "physical_network"},
	{name: "provider:segmentation_id", on: onCreate, admin: true, veil: true, set: orAbsent(as(func(c *networkChange) **int { return &c.Segment }, integer(1, 1<<24-1))), field: "segment", read: asInt},
}

var networkAttributes = []attribute[networkChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "project_id", on: onCreate, set: project(func(c *networkChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "tenant_id", on: onCreate, set: project(func(c *networkChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "name", on: anytime, set: as(func(c *networkChange) **string { return &c.Name }, text(255)), field: "name", sorts: true},
	{name: "description", on: anytime, set: as(func(c *networkChange) **string { return &c.Description }, text(255)), field: "description"},
	{name: "admin_state_up", on: anytime, set: as(func(c *networkChange) **bool { return &c.AdminUp }, boolean), field: "admin_up", read: asBool, sorts: true},
	{name: "shared", on: anytime, admin: true, off: true, set: as(func(c *networkChange) **bool { return &c.Shared }, boolean), field: "shared", read: asBool},
	{name: "router:external", on: anytime, admin: true, off: true, set: as(func(c *networkChange) **bool { return &c.External }, boolean), field: "external", read: asBool},
	{name: "mtu", on: anytime, set: as(func(c *networkChange) **int { return &c.MTU }, mtu), field: "mtu", read: asInt, sorts: true},
	{name: "port_security_enabled", on: anytime, set: as(func(c *networkChange) **bool { return &c.PortSecurity }, boolean), field: "port_security", read: asBool},
	providerAttributes[0], providerAttributes[1], providerAttributes[2],
	{name: "segments", on: onCreate, admin: true, veil: true, set: oneSegment},
	{name: "availability_zone_hints", on: onCreate, set: nothing[networkChange]},
	{name: "status", field: "status", sorts: true},
	{name: "revision_number", field: "revision", read: asInt},
	{name: "subnets"}, {name: "availability_zones"}, {name: "ipv4_address_scope"}, {name: "ipv6_address_scope"},
	{name: "tags"}, {name: "created_at"}, {name: "updated_at"},
}

// mtu reads a size of frames that IP can use, or 0 for the network's to choose.
func mtu(raw json.RawMessage) (int, error) {
	if n, err := integer(0, 0)(raw); err == nil {
		return n, nil
	}
	return integer(68, 65535)(raw)
}

// oneSegment reads the provider attributes from a list of segments, of which a network has one.
func oneSegment(c *networkChange, raw json.RawMessage) error {
	list, err := listOf(func(raw json.RawMessage) (map[string]json.RawMessage, error) {
		return dict(raw, "provider:network_type", "provider:physical_network", "provider:segmentation_id")
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
		if v, ok := list[0][a.name]; ok {
			if err := a.set(c, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// orAbsent takes null for not being given.
func orAbsent[C any](set func(*C, json.RawMessage) error) func(*C, json.RawMessage) error {
	return func(c *C, raw json.RawMessage) error {
		if isNull(raw) {
			return nil
		}
		return set(c, raw)
	}
}

func viewNetwork(n network.Network, who identity.Caller) object {
	o := object{
		"id": n.ID, "name": n.Name, "description": n.Description, "project_id": n.Project, "tenant_id": n.Project,
		"admin_state_up": n.AdminUp, "status": network.Active, "shared": n.Shared, "router:external": n.External, "mtu": n.MTU,
		"port_security_enabled": n.PortSecurity, "subnets": n.Subnets, "availability_zone_hints": []string{},
		"availability_zones": []string{}, "ipv4_address_scope": nil, "ipv6_address_scope": nil,
	}
	if who.Admin() {
		o["provider:network_type"], o["provider:physical_network"], o["provider:segmentation_id"] = n.Type, orNull(n.PhysicalNetwork), n.Segment
	}
	stamp(o, n.Revision, n.CreatedAt, n.UpdatedAt, n.Tags)
	return o
}

// stamp adds what every object has.
func stamp(o object, revision int64, created, updated time.Time, tags []string) {
	const layout = "2006-01-02T15:04:05Z"
	o["revision_number"], o["tags"] = revision, tags
	o["created_at"], o["updated_at"] = created.UTC().Format(layout), updated.UTC().Format(layout)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
