package journal

import (
	"fmt"
	"slices"
	"strings"
)

// Kind of object: how the controller knows it, what it refers to, and what it must not be told. A new type is a
// new line of the table; store adds where the objects of the types that berth has an API for are read.
type kind struct {
	typ        string // the singular name: the envelope around one object
	collection string // of the northbound
	plural     string // envelope around a list; empty: the type and an s
	within     string // type of the object whose collection holds this one's; within_id names it
	needs      []link // must be at the controller before it
	names      []link // must only outlive it there
	owns       []string
	fixed      bool // the controller has no update for it
	ours       bool // berth has an API for it

	shape      func(o object, op Operation) error // after the lists below; may be nil
	update     []string                           // attributes that an update must not carry
	never      []string                           // attributes that the controller must never see
	unlessNull []string                           // attributes that it must not see as null
}

// link is an attribute that holds the ID of an object of that type, or several. A dot goes into an object or into
// each object of a list.
type link struct {
	attribute string
	typ       string
	when      func(o object) bool // nil: always
}

var identities = []string{"id", "tenant_id", "project_id"}

// kinds is in the order in which objects are made: parents before their children.
var kinds = []kind{
	{typ: "policy", collection: "qos/policies", plural: "policies", shape: shapePolicy},
	{typ: "security_group", collection: "security-groups", ours: true, owns: []string{"security_group_rule"}},
	{typ: "security_group_rule", collection: "security-group-rules", ours: true, shape: shapeRule,
		needs: []link{{attribute: "security_group_id", typ: "security_group"}, {attribute: "remote_group_id", typ: "security_group"}}},
	{typ: "network", collection: "networks", ours: true,
		needs: []link{{attribute: "qos_policy_id", typ: "policy"}},
		never: []string{"status", "subnets"}, update: identities, unlessNull: []string{"qos_policy_id"}},
	{typ: "subnet", collection: "subnets", ours: true,
		needs:  []link{{attribute: "network_id", typ: "network"}},
		update: append([]string{"network_id", "ip_version", "cidr"}, identities...), unlessNull: []string{"segment_id", "subnetpool_id"}},
	{typ: "port", collection: "ports", ours: true, shape: shapePort,
		needs: []link{{attribute: "network_id", typ: "network"}, {attribute: "fixed_ips.subnet_id", typ: "subnet"},
			{attribute: "security_groups", typ: "security_group"}, {attribute: "qos_policy_id", typ: "policy"}},
		names: []link{{attribute: "device_id", typ: "router", when: ofRouter}},
		never: []string{"status"}, update: append([]string{"network_id"}, identities...),
		unlessNull: []string{"binding:profile", "dns_name", "port_security_enabled", "qos_policy_id"}},
	{typ: "router", collection: "routers",
		needs:  []link{{attribute: "gw_port_id", typ: "port"}, {attribute: "external_gateway_info.network_id", typ: "network"}},
		update: append([]string{"status"}, identities...)},
	{typ: "floatingip", collection: "floatingips", shape: shapeFloatingIP,
		needs: []link{{attribute: "floating_network_id", typ: "network"}, {attribute: "port_id", typ: "port"}, {attribute: "router_id", typ: "router"}}},
	{typ: "trunk", collection: "trunks", ours: true, shape: shapeTrunk,
		needs: []link{{attribute: "port_id", typ: "port"}, {attribute: "sub_ports.port_id", typ: "port"}}},
	{typ: "l2_gateway", collection: "l2-gateways"},
	{typ: "l2gateway_connection", collection: "l2gateway-connections", fixed: true, shape: shapeConnection,
		needs: []link{{attribute: "network_id", typ: "network"}, {attribute: "gateway_id", typ: "l2_gateway"}, {attribute: "l2_gateway_id", typ: "l2_gateway"}}},
	{typ: "flowclassifier", collection: "sfc/flowclassifiers",
		needs: []link{{attribute: "logical_source_port", typ: "port"}, {attribute: "logical_destination_port", typ: "port"}}},
	{typ: "portpair", collection: "sfc/portpairs",
		needs: []link{{attribute: "ingress", typ: "port"}, {attribute: "egress", typ: "port"}}},
	{typ: "portpairgroup", collection: "sfc/portpairgroups",
		needs: []link{{attribute: "port_pairs", typ: "portpair"}}},
	{typ: "portchain", collection: "sfc/portchains",
		needs: []link{{attribute: "port_pair_groups", typ: "portpairgroup"}, {attribute: "flow_classifiers", typ: "flowclassifier"}}},
	{typ: "bgpvpn", collection: "bgpvpns",
		needs: []link{{attribute: "networks", typ: "network"}, {attribute: "routers", typ: "router"}}},
	{typ: "loadbalancer", collection: "lbaas/loadbalancers",
		needs: []link{{attribute: "vip_subnet_id", typ: "subnet"}, {attribute: "vip_port_id", typ: "port"}}},
	{typ: "listener", collection: "lbaas/listeners",
		needs: []link{{attribute: "loadbalancer_id", typ: "loadbalancer"}, {attribute: "loadbalancers", typ: "loadbalancer"}},
		names: []link{{attribute: "default_pool_id", typ: "pool"}}},
	{typ: "pool", collection: "lbaas/pools",
		needs: []link{{attribute: "loadbalancer_id", typ: "loadbalancer"}, {attribute: "loadbalancers", typ: "loadbalancer"},
			{attribute: "listener_id", typ: "listener"}, {attribute: "listeners", typ: "listener"}}},
	{typ: "member", collection: "members", within: "pool",
		needs: []link{{attribute: "pool_id", typ: "pool"}, {attribute: "subnet_id", typ: "subnet"}}},
	{typ: "healthmonitor", collection: "lbaas/healthmonitors",
		needs: []link{{attribute: "pool_id", typ: "pool"}, {attribute: "pools", typ: "pool"}}},
}

// byType finds a kind.
var byType = func() map[string]kind {
	all := map[string]kind{}
	for _, k := range kinds {
		all[k.typ] = k
	}
	return all
}()

// Types names every type of object that a controller is told about, parents before their children.
func Types() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.typ
	}
	return names
}

// Known tells whether there are objects of that type.
func Known(typ string) bool { return byType[typ].typ != "" }

// Ours tells whether berth has an API for objects of that type, so that nobody else records their changes.
func Ours(typ string) bool { return byType[typ].ours }

// Fixed tells whether the controller knows no update of objects of that type.
func Fixed(typ string) bool { return byType[typ].fixed }

// Owns names the types of objects that go with one of that type, without a word of their own.
func Owns(typ string) []string { return byType[typ].owns }

func (k kind) many() string {
	if k.plural != "" {
		return k.plural
	}
	return k.typ + "s"
}

// ofRouter tells whether a port's device is a router.
func ofRouter(o object) bool {
	owner, _ := o["device_owner"].(string)
	return strings.HasPrefix(owner, "network:router_") || owner == "network:ha_router_replicated_interface"
}

// Referring completes a change with what its object refers to. before is the last change of the same object, whose
// references it may let go; nil if there is none.
func (c Change) Referring(before *Change) (Change, error) {
	var err error
	if c.Parents, c.Former, err = References(c.Object.Type, c.Data); err != nil {
		return c, fmt.Errorf("%s %s: %w", c.Object.Type, c.Object.ID, err)
	}
	if before == nil {
		return c, nil
	}
	for _, r := range slices.Concat(before.Parents, before.Former) {
		if !slices.Contains(c.Parents, r) && !slices.Contains(c.Former, r) {
			c.Former = append(c.Former, r)
		}
	}
	return c, nil
}

// References are the objects that an object of that type refers to: needs must be at the controller before it,
// names must only outlive it there. Each stands once, in the order of the table.
func References(typ string, data []byte) (needs, names []Ref, err error) {
	o, err := decodeObject(data)
	if err != nil {
		return nil, nil, err
	}
	k := byType[typ]
	for _, l := range k.needs {
		needs = l.add(needs, o)
	}
	for _, l := range k.names {
		names = l.add(names, o)
	}
	return needs, names, nil
}

func (l link) add(refs []Ref, o object) []Ref {
	if l.when != nil && !l.when(o) {
		return refs
	}
	for _, id := range follow(o, strings.Split(l.attribute, ".")) {
		if r := (Ref{Type: l.typ, ID: id}); !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	return refs
}

// follow reads the IDs at the end of a path. An object there stands for its ID.
func follow(v any, path []string) []string {
	switch v := v.(type) {
	case string:
		if len(path) == 0 && v != "" {
			return []string{v}
		}
	case []any:
		var ids []string
		for _, item := range v {
			ids = append(ids, follow(item, path)...)
		}
		return ids
	case object:
		if len(path) == 0 {
			path = []string{"id"}
		}
		return follow(v[path[0]], path[1:])
	}
	return nil
}
