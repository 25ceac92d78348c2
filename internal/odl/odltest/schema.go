package odltest

// attributeKind says how the real controller reads and returns a value.
type attributeKind int

const (
	text       attributeKind = iota // also numbers and booleans are returned as text
	number                          // a text with digits is returned as a number
	flag                            // everything but true is false
	texts                           // a list of texts
	numbers                         // a list of numbers
	objectList                      // a list of objects with the attributes in `of`
	subobject                       // one object with the attributes in `of`
	valueMap                        // an object whose values are texts; it is returned with the name Map
)

// schemaAttribute is an attribute that the real controller has. The controller drops all other attributes.
type schemaAttribute struct {
	name     string
	kind     attributeKind
	of       []schemaAttribute
	onCreate any  // value after a create without the attribute
	always   any  // value after a create or an update without the attribute
	orNull   bool // an absent value is returned as null
}

func attributes(kind attributeKind, names ...string) []schemaAttribute {
	list := make([]schemaAttribute, len(names))
	for i, name := range names {
		list[i] = schemaAttribute{name: name, kind: kind}
	}
	return list
}

func join(lists ...[]schemaAttribute) (all []schemaAttribute) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// single returns a list with one attribute.
func single(a schemaAttribute) []schemaAttribute { return []schemaAttribute{a} }

func listOf(name string, of ...[]schemaAttribute) []schemaAttribute {
	return single(schemaAttribute{name: name, kind: objectList, of: join(of...)})
}

func onCreate(kind attributeKind, name string, value any) []schemaAttribute {
	return single(schemaAttribute{name: name, kind: kind, onCreate: value})
}

func always(kind attributeKind, name string, value any) []schemaAttribute {
	return single(schemaAttribute{name: name, kind: kind, always: value})
}

func orNull(kind attributeKind, name string) []schemaAttribute {
	return single(schemaAttribute{name: name, kind: kind, orNull: true})
}

// withDefault returns the list with the default values of its only attribute: onCreate applies if a create
// omits the attribute, and `always` if any write omits the attribute.
func withDefault(list []schemaAttribute, onCreate, always any) []schemaAttribute {
	list[0].onCreate, list[0].always = onCreate, always
	return list
}

var (
	emptyList = []any{}
	named     = attributes(text, "name")
	fixedIPs  = join(attributes(text, "ip_address", "subnet_id"))
	routes    = join(attributes(text, "destination", "nexthop"))
	idList    = attributes(text, "id")
)

// schemas contains the attributes of each type without id, tenant_id, project_id and revision_number.
var schemas = map[string][]schemaAttribute{
	"policy": join(
		named,
		attributes(flag, "shared"),
		listOf("bandwidth_limit_rules", attributes(number, "max_kbps", "max_burst_kbps")),
		listOf("dscp_marking_rules", attributes(number, "dscp_mark")),
	),
	"security_group": named,
	"security_group_rule": join(
		attributes(
			text, "direction", "protocol", "ethertype", "remote_ip_prefix", "remote_group_id",
			"security_group_id",
		),
		attributes(number, "port_range_min", "port_range_max"),
	),
	"network": join(
		named,
		always(flag, "admin_state_up", true),
		always(text, "status", "ACTIVE"),
		always(flag, "shared", false),
		always(flag, "router:external", false),
		onCreate(text, "provider:network_type", "flat"),
		attributes(text, "provider:physical_network", "provider:segmentation_id", "qos_policy_id"),
		withDefault(
			listOf("segments", attributes(
				text, "provider:network_type",
				"provider:physical_network", "provider:segmentation_id",
			)),
			nil,
			emptyList,
		),
		always(flag, "vlan_transparent", false),
		attributes(number, "mtu"),
	),
	"subnet": join(
		named,
		attributes(text, "network_id", "cidr", "gateway_ip"),
		always(number, "ip_version", 4),
		onCreate(texts, "dns_nameservers", emptyList),
		listOf("allocation_pools", attributes(text, "start", "end")),
		withDefault(listOf("host_routes", routes), emptyList, nil),
		always(flag, "enable_dhcp", true),
		orNull(text, "ipv6_address_mode"),
		orNull(text, "ipv6_ra_mode"),
	),
	"port": join(
		named,
		onCreate(flag, "admin_state_up", true),
		onCreate(text, "status", "ACTIVE"),
		withDefault(listOf("fixed_ips", fixedIPs), nil, emptyList),
		attributes(
			text, "network_id", "mac_address", "device_id", "device_owner", "binding:host_id",
			"binding:vnic_type", "binding:vif_type", "binding:profile", "qos_policy_id",
		),
		listOf("security_groups", idList),
		listOf("allowed_address_pairs", attributes(text, "mac_address", "ip_address")),
		attributes(valueMap, "binding:vif_details"),
		listOf("extra_dhcp_opts", attributes(text, "opt_name", "opt_value"), always(number, "ip_version", 4)),
		always(flag, "port_security_enabled", true),
	),
	"router": join(
		named,
		onCreate(flag, "admin_state_up", true),
		onCreate(text, "status", "ACTIVE"),
		always(flag, "distributed", false),
		orNull(text, "gw_port_id"),
		single(schemaAttribute{
			name:   "external_gateway_info",
			kind:   subobject,
			orNull: true,
			of: join(
				attributes(text, "network_id"),
				attributes(flag, "enable_snat"),
				listOf("external_fixed_ips", fixedIPs),
			),
		}),
		listOf("routes", routes),
	),
	"floatingip": attributes(
		text, "floating_network_id",
		"port_id", "fixed_ip_address", "floating_ip_address", "router_id", "status",
	),
	"trunk": join(
		named,
		onCreate(flag, "admin_state_up", true),
		onCreate(text, "status", "DOWN"),
		attributes(text, "port_id"),
		withDefault(
			listOf("sub_ports", attributes(text, "port_id", "segmentation_type", "segmentation_id")),
			emptyList,
			nil,
		),
	),
	"l2_gateway": join(named, withDefault(listOf(
		"devices",
		attributes(text, "id", "device_name"),
		listOf("interfaces", attributes(text, "name"), attributes(numbers, "segmentation_id")),
	), nil, emptyList)),
	"l2gateway_connection": join(
		named,
		attributes(text, "gateway_id", "network_id", "port_id"),
		attributes(number, "segmentation_id"),
	),
	"flowclassifier": join(
		named,
		attributes(
			text,
			"ethertype",
			"protocol",
			"source_ip_prefix",
			"destination_ip_prefix",
			"logical_source_port",
			"logical_destination_port",
		),
		attributes(
			number, "source_port_range_min", "source_port_range_max",
			"destination_port_range_min", "destination_port_range_max",
		),
		attributes(valueMap, "l7_parameters"),
	),
	"portpair": join(
		named,
		attributes(text, "ingress", "egress"),
		attributes(valueMap, "service_function_parameters"),
	),
	"portpairgroup": join(named, attributes(texts, "port_pairs")),
	"portchain": join(
		named,
		attributes(texts, "port_pair_groups", "flow_classifiers"),
		attributes(valueMap, "chain_parameters"),
	),
	"bgpvpn": join(
		named,
		always(flag, "admin_state_up", true),
		always(text, "status", "ACTIVE"),
		always(text, "type", "l3"),
		always(flag, "auto_aggregate", false),
		attributes(text, "technique"),
		attributes(number, "vni"),
		attributes(
			texts, "route_targets", "import_targets", "export_targets",
			"route_distinguishers", "networks", "routers",
		),
	),
	"loadbalancer": join(
		named, onCreate(flag, "admin_state_up", true), onCreate(text, "status", "ACTIVE"),
		attributes(text, "vip_address", "vip_subnet_id"),
	),
	"listener": join(
		named,
		attributes(text, "default_pool_id", "protocol", "protocol_port"),
		always(number, "connection_limit", -1),
		always(flag, "admin_state_up", true),
		listOf("loadbalancers", idList),
	),
	"pool": join(
		named,
		attributes(text, "protocol", "lb_algorithm", "healthmonitor_id"),
		attributes(flag, "admin_state_up"),
		listOf("listeners", idList),
		single(schemaAttribute{
			name: "session_persistence",
			kind: subobject,
			of:   attributes(text, "type", "cookie_name"),
		}),
	),
	"healthmonitor": join(
		attributes(text, "type", "url_path"),
		attributes(number, "delay", "timeout", "max_retries"),
		always(text, "http_method", ""),
		always(text, "expected_codes", ""),
		always(flag, "admin_state_up", true),
		listOf("pools", idList),
	),
	"member": join(
		attributes(text, "address", "subnet_id"),
		attributes(number, "protocol_port"),
		onCreate(number, "weight", 1),
		onCreate(flag, "admin_state_up", true),
	),
}
