package journal

import (
	"fmt"
	"slices"
	"strings"
)

// objectType describes a type of object: its names at the controller, the types to which its objects refer,
// and the attributes that are not sent. To add a type, add a row to the table objectTypes. If berth has a
// Neutron API for the type, also add a table for its objects to the store.
type objectType struct {
	typ        string // singular name: the envelope key of one object
	collection string // path of the collection in the northbound API
	plural     string // envelope key of a list; empty: typ + "s"
	// type of the parent whose objects contain this collection; the data contain the attribute parent_id
	parent string
	needs  []reference // references to objects that must be at the controller first
	// references to objects that may arrive later, but must not be deleted before this object
	mentions []reference
	owns     []string
	noUpdate bool // the controller cannot update the type
	hasAPI   bool // berth has a Neutron API for the type

	// converts the object after the lists below were applied; may be nil
	shape       func(o object, op Operation) error
	notInUpdate []string // attributes that an update must not contain
	neverSent   []string // attributes that are never sent
	notIfNull   []string // attributes that are not sent if they are null
}

// reference is an attribute that contains the ID or the IDs of other objects. A dot in the name of a
// reference leads into an object, or into each object of a list.
type reference struct {
	attribute string
	typ       string
	when      func(o object) bool // nil: always
}

var identityAttributes = []string{"id", "tenant_id", "project_id"}

// objectTypes lists parents before their children.
var objectTypes = []objectType{
	{
		typ:        "policy",
		collection: "qos/policies",
		plural:     "policies",
		shape:      shapePolicy,
	},
	{
		typ:        "security_group",
		collection: "security-groups",
		hasAPI:     true,
		owns:       []string{"security_group_rule"},
	},
	{
		typ:        "security_group_rule",
		collection: "security-group-rules",
		hasAPI:     true,
		shape:      shapeRule,
		needs: []reference{
			{attribute: "security_group_id", typ: "security_group"},
			{attribute: "remote_group_id", typ: "security_group"},
		},
	},
	{
		typ:        "network",
		collection: "networks",
		hasAPI:     true,
		needs:      []reference{{attribute: "qos_policy_id", typ: "policy"}},
		neverSent: []string{
			"status",
			"subnets",
		},
		notInUpdate: identityAttributes,
		notIfNull:   []string{"qos_policy_id"},
	},
	{
		typ:         "subnet",
		collection:  "subnets",
		hasAPI:      true,
		needs:       []reference{{attribute: "network_id", typ: "network"}},
		notInUpdate: append([]string{"network_id", "ip_version", "cidr"}, identityAttributes...),
		notIfNull:   []string{"segment_id", "subnetpool_id"},
	},
	{
		typ:        "port",
		collection: "ports",
		hasAPI:     true,
		shape:      shapePort,
		needs: []reference{
			{attribute: "network_id", typ: "network"},
			{attribute: "fixed_ips.subnet_id", typ: "subnet"},
			{
				attribute: "security_groups",
				typ:       "security_group",
			},
			{attribute: "qos_policy_id", typ: "policy"},
		},
		mentions:    []reference{{attribute: "device_id", typ: "router", when: isRouterPort}},
		neverSent:   []string{"status"},
		notInUpdate: append([]string{"network_id"}, identityAttributes...),
		notIfNull:   []string{"binding:profile", "dns_name", "port_security_enabled", "qos_policy_id"},
	},
	{
		typ:        "router",
		collection: "routers",
		needs: []reference{
			{attribute: "gw_port_id", typ: "port"},
			{attribute: "external_gateway_info.network_id", typ: "network"},
		},
		notInUpdate: append([]string{"status"}, identityAttributes...),
	},
	{
		typ:        "floatingip",
		collection: "floatingips",
		shape:      shapeFloatingIP,
		needs: []reference{
			{attribute: "floating_network_id", typ: "network"},
			{attribute: "port_id", typ: "port"},
			{attribute: "router_id", typ: "router"},
		},
	},
	{
		typ:        "trunk",
		collection: "trunks",
		hasAPI:     true,
		shape:      shapeTrunk,
		needs: []reference{
			{attribute: "port_id", typ: "port"},
			{attribute: "sub_ports.port_id", typ: "port"},
		},
	},
	{typ: "l2_gateway", collection: "l2-gateways"},
	{
		typ:        "l2gateway_connection",
		collection: "l2gateway-connections",
		noUpdate:   true,
		shape:      shapeConnection,
		needs: []reference{
			{attribute: "network_id", typ: "network"},
			{attribute: "gateway_id", typ: "l2_gateway"},
			{attribute: "l2_gateway_id", typ: "l2_gateway"},
		},
	},
	{typ: "flowclassifier", collection: "sfc/flowclassifiers",
		needs: []reference{
			{attribute: "logical_source_port", typ: "port"},
			{attribute: "logical_destination_port", typ: "port"},
		}},
	{typ: "portpair", collection: "sfc/portpairs",
		needs: []reference{{attribute: "ingress", typ: "port"}, {attribute: "egress", typ: "port"}}},
	{typ: "portpairgroup", collection: "sfc/portpairgroups",
		needs: []reference{{attribute: "port_pairs", typ: "portpair"}}},
	{typ: "portchain", collection: "sfc/portchains",
		needs: []reference{
			{attribute: "port_pair_groups", typ: "portpairgroup"},
			{attribute: "flow_classifiers", typ: "flowclassifier"},
		}},
	{typ: "bgpvpn", collection: "bgpvpns",
		needs: []reference{{attribute: "networks", typ: "network"}, {attribute: "routers", typ: "router"}}},
	{typ: "loadbalancer", collection: "lbaas/loadbalancers",
		needs: []reference{
			{attribute: "vip_subnet_id", typ: "subnet"},
			{attribute: "vip_port_id", typ: "port"},
		}},
	{
		typ:        "listener",
		collection: "lbaas/listeners",
		needs: []reference{
			{attribute: "loadbalancer_id", typ: "loadbalancer"},
			{attribute: "loadbalancers", typ: "loadbalancer"},
		},
		mentions: []reference{{attribute: "default_pool_id", typ: "pool"}},
	},
	{typ: "pool", collection: "lbaas/pools", neverSent: []string{"members"}, // see NestedType for the members
		needs: []reference{
			{attribute: "loadbalancer_id", typ: "loadbalancer"},
			{attribute: "loadbalancers", typ: "loadbalancer"},
			{attribute: "listener_id", typ: "listener"},
			{attribute: "listeners", typ: "listener"},
		}},
	{
		typ:        "member",
		collection: "members",
		parent:     "pool",
		needs:      []reference{{attribute: "pool_id", typ: "pool"}, {attribute: "subnet_id", typ: "subnet"}},
	},
	{typ: "healthmonitor", collection: "lbaas/healthmonitors",
		needs: []reference{{attribute: "pool_id", typ: "pool"}, {attribute: "pools", typ: "pool"}}},
}

// byType maps a type name to its description.
var byType = func() map[string]objectType {
	all := map[string]objectType{}
	for _, k := range objectTypes {
		all[k.typ] = k
	}
	return all
}()

// Types returns all types that are sent to a controller, parents before their children.
func Types() []string {
	names := make([]string, len(objectTypes))
	for i, k := range objectTypes {
		names[i] = k.typ
	}
	return names
}

// IsKnownType reports whether the journal knows the type.
func IsKnownType(typ string) bool { return byType[typ].typ != "" }

// HasAPI reports whether berth has a Neutron API for the type. Other services must not record changes of a
// type for which berth has an API.
func HasAPI(typ string) bool { return byType[typ].hasAPI }

// OwnedTypes returns the types whose objects the controller deletes together with an object of this type. The
// deletion of such owned objects has no journal entry of its own.
func OwnedTypes(typ string) []string { return byType[typ].owns }

// NestedType returns the type whose collections are nested in the objects of a type, for example `member` for
// the type `pool`. For most types NestedType returns "". An update of a pool makes the controller drop the
// members of the pool, whatever the body of the request contains. berth therefore creates the members again
// after the update, in the same attempt.
func NestedType(typ string) string {
	for _, k := range objectTypes {
		if k.parent == typ {
			return k.typ
		}
	}
	return ""
}

func (k objectType) listKey() string {
	if k.plural != "" {
		return k.plural
	}
	return k.typ + "s"
}

// isRouterPort reports whether the device of a port is a router.
func isRouterPort(o object) bool {
	owner, _ := o["device_owner"].(string)
	return strings.HasPrefix(owner, "network:router_") || owner == "network:ha_router_replicated_interface"
}

// WithReferences adds the references of the changed object to the change. `before` is the last change of the
// same object, or nil if there is none. References that only `before` has are added as mentions.
func (c Change) WithReferences(before *Change) (Change, error) {
	var err error
	if c.Parents, c.Mentioned, err = References(c.Object.Type, c.Data); err != nil {
		return c, fmt.Errorf("%s %s: %w", c.Object.Type, c.Object.ID, err)
	}
	if before == nil {
		return c, nil
	}
	for _, r := range slices.Concat(before.Parents, before.Mentioned) {
		if !slices.Contains(c.Parents, r) && !slices.Contains(c.Mentioned, r) {
			c.Mentioned = append(c.Mentioned, r)
		}
	}
	return c, nil
}

// References returns the objects to which an object refers, without duplicates, in the order of the table
// objectTypes. The objects in `needs` must be at the controller before this object. The objects in `names`
// must not be deleted before this object.
func References(typ string, data []byte) (needs, names []Ref, err error) {
	o, err := decodeObject(data)
	if err != nil {
		return nil, nil, err
	}
	k := byType[typ]
	for _, l := range k.needs {
		needs = l.appendTo(needs, o)
	}
	for _, l := range k.mentions {
		names = l.appendTo(names, o)
	}
	return needs, names, nil
}

func (l reference) appendTo(refs []Ref, o object) []Ref {
	if l.when != nil && !l.when(o) {
		return refs
	}
	for _, id := range idsAtPath(o, strings.Split(l.attribute, ".")) {
		if r := (Ref{Type: l.typ, ID: id}); !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	return refs
}

// idsAtPath returns the IDs at the end of a path of attribute names. If there is an object at the end of the
// path, idsAtPath returns the object's ID.
func idsAtPath(v any, path []string) []string {
	switch v := v.(type) {
	case string:
		if len(path) == 0 && v != "" {
			return []string{v}
		}
	case []any:
		var ids []string
		for _, item := range v {
			ids = append(ids, idsAtPath(item, path)...)
		}
		return ids
	case object:
		if len(path) == 0 {
			path = []string{"id"}
		}
		return idsAtPath(v[path[0]], path[1:])
	}
	return nil
}
