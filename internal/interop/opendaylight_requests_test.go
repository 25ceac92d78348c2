package interop

import (
	"fmt"
	"strings"
)

// collection describes a collection of the northbound API, and an object that the test creates and updates in
// this collection.
type collection struct {
	path, envelope, plural string
	attributes             string // attributes of a valid object, without id and tenant_id
	changed                string // attributes of a valid update
}

// tenant is the tenant of all objects. The controller returns this ID without dashes.
const tenant = "99999999-0000-4000-8000-000000000099"

// sharedID returns the ID of an object that other objects refer to. The test creates all these objects before
// it sends the requests about each collection.
func sharedID(n int) string { return fmt.Sprintf("88888888-0000-4000-8000-%012d", n) }

// collections lists the collections of all types except member, because a member only exists in a pool.
var collections = []collection{
	{
		"qos/policies",
		"policy",
		"policies",
		`"name":"p","shared":false,` +
			`"bandwidth_limit_rules":[{"id":"` + sharedID(1) + `","tenant_id":"` + tenant + `",` +
			`"max_kbps":100,"max_burst_kbps":10}],` +
			`"dscp_marking_rules":[{"id":"` + sharedID(2) + `","tenant_id":"` + tenant + `",` +
			`"dscp_mark":8}]`,
		`"name":"q","shared":true,"bandwidth_limit_rules":[],"dscp_marking_rules":[]`,
	},
	{
		"security-groups",
		"security_group",
		"security_groups",
		`"name":"g","description":"web","stateful":true`,
		`"name":"h"`,
	},
	{
		"security-group-rules",
		"security_group_rule",
		"security_group_rules",
		`"security_group_id":"` + sharedID(3) + `","direction":"ingress","ethertype":"IPv4",` +
			`"protocol":"tcp","port_range_min":80,"port_range_max":81,"remote_ip_prefix":"10.0.0.0/8"`,
		`"security_group_id":"` + sharedID(3) + `","direction":"egress","ethertype":"IPv6","protocol":null`,
	},
	{
		"networks",
		"network",
		"networks",
		`"name":"n","admin_state_up":true,"provider:network_type":"vxlan",` +
			`"provider:segmentation_id":7,"mtu":1450,"tags":[],"description":"","shared":false,` +
			`"router:external":false`,
		`"name":"m","admin_state_up":false,"provider:network_type":"vlan",` +
			`"provider:physical_network":"physnet1","provider:segmentation_id":9,"shared":true,` +
			`"router:external":true`,
	},
	{
		"subnets",
		"subnet",
		"subnets",
		`"name":"s","network_id":"` + sharedID(4) + `","ip_version":4,"cidr":"10.0.0.0/24",` +
			`"gateway_ip":"10.0.0.1","allocation_pools":[{"start":"10.0.0.2","end":"10.0.0.254"}],` +
			`"dns_nameservers":["10.0.0.3","10.0.0.2"],` +
			`"host_routes":[{"destination":"10.1.0.0/16","nexthop":"10.0.0.4"}],"enable_dhcp":true,` +
			`"ipv6_address_mode":null`,
		`"name":"t","enable_dhcp":false,"gateway_ip":null,"allocation_pools":[],"host_routes":[]`,
	},
	{
		"ports",
		"port",
		"ports",
		`"name":"p","network_id":"` + sharedID(4) + `","mac_address":"fa:16:3e:00:00:01",` +
			`"admin_state_up":true,` +
			`"fixed_ips":[{"subnet_id":"` + sharedID(5) + `","ip_address":"10.0.0.9"},` +
			`{"subnet_id":"` + sharedID(5) + `","ip_address":"10.0.0.8"}],"device_id":"d",` +
			`"device_owner":"compute:nova","security_groups":[{"id":"` + sharedID(3) + `"}],` +
			`"allowed_address_pairs":[{"mac_address":"fa:16:3e:00:00:02","ip_address":"10.0.0.10"}],` +
			`"binding:host_id":"cmp-1","binding:vnic_type":"normal","binding:vif_type":"ovs",` +
			`"binding:profile":"{\"a\":1}",` +
			`"binding:vif_details":{"port_filter":true,"bridge_name":"br-int"},` +
			`"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":"1400","ip_version":4}],` +
			`"port_security_enabled":true`,
		`"name":"q","admin_state_up":false,"security_groups":[],"allowed_address_pairs":[],` +
			`"binding:host_id":"","binding:vif_type":"unbound","binding:profile":"{}",` +
			`"binding:vif_details":{}`,
	},
	{
		"routers",
		"router",
		"routers",
		`"name":"r","admin_state_up":true,` +
			`"external_gateway_info":{"network_id":"` + sharedID(4) + `","enable_snat":true,` +
			`"external_fixed_ips":[{"subnet_id":"` + sharedID(5) + `","ip_address":"10.0.0.20"}]},` +
			`"gw_port_id":"` + sharedID(6) + `","distributed":false,` +
			`"routes":[{"destination":"10.2.0.0/16","nexthop":"10.0.0.5"}]`,
		`"name":"t","admin_state_up":false,"routes":[]`,
	},
	{
		"floatingips",
		"floatingip",
		"floatingips",
		`"floating_network_id":"` + sharedID(4) + `","floating_ip_address":"10.0.0.30",` +
			`"port_id":"` + sharedID(6) + `","fixed_ip_address":"10.0.0.9",` +
			`"router_id":"` + sharedID(7) + `","status":"ACTIVE"`,
		`"floating_network_id":"` + sharedID(4) + `","floating_ip_address":"10.0.0.30","status":"DOWN"`,
	},
	{
		"trunks",
		"trunk",
		"trunks",
		`"name":"t","port_id":"` + sharedID(6) + `","admin_state_up":true,"status":"ACTIVE",` +
			`"sub_ports":[{"port_id":"` + sharedID(8) + `","segmentation_type":"vlan",` +
			`"segmentation_id":9}]`,
		`"name":"u","port_id":"` + sharedID(6) + `","status":"DOWN","sub_ports":[]`,
	},
	{
		"l2-gateways",
		"l2_gateway",
		"l2_gateways",
		`"name":"g",` +
			`"devices":[{"id":"` + sharedID(18) + `","device_name":"switch",` +
			`"interfaces":[{"name":"eth0","segmentation_id":[5,6]}]}]`,
		`"name":"h","devices":[]`,
	},
	{
		"l2gateway-connections",
		"l2gateway_connection",
		"l2gateway_connections",
		`"network_id":"` + sharedID(4) + `","gateway_id":"` + sharedID(9) + `","segmentation_id":5`,
		`"network_id":"` + sharedID(4) + `","gateway_id":"` + sharedID(9) + `","segmentation_id":6`,
	},
	{
		"sfc/flowclassifiers",
		"flowclassifier",
		"flowclassifiers",
		`"name":"f","ethertype":"IPv4","protocol":"tcp","source_port_range_min":1,` +
			`"source_port_range_max":2,"destination_port_range_min":3,"destination_port_range_max":4,` +
			`"source_ip_prefix":"10.0.0.0/24","destination_ip_prefix":"10.1.0.0/24",` +
			`"logical_source_port":"` + sharedID(6) + `",` +
			`"logical_destination_port":"` + sharedID(8) + `","l7_parameters":{}`,
		`"name":"g","ethertype":"IPv6"`,
	},
	{
		"sfc/portpairs",
		"portpair",
		"portpairs",
		`"name":"p","ingress":"` + sharedID(6) + `","egress":"` + sharedID(8) + `",` +
			`"service_function_parameters":{"correlation":"mpls"}`,
		`"name":"q","ingress":"` + sharedID(8) + `","egress":"` + sharedID(6) + `"`,
	},
	{
		"sfc/portpairgroups",
		"portpairgroup",
		"portpairgroups",
		`"name":"g","port_pairs":["` + sharedID(10) + `"]`,
		`"name":"h","port_pairs":[]`,
	},
	{
		"sfc/portchains",
		"portchain",
		"portchains",
		`"name":"c","port_pair_groups":["` + sharedID(11) + `","` + sharedID(12) + `"],` +
			`"flow_classifiers":["` + sharedID(13) + `"],"chain_parameters":{"correlation":"mpls"}`,
		`"name":"d","port_pair_groups":[],"flow_classifiers":[]`,
	},
	{
		"bgpvpns",
		"bgpvpn",
		"bgpvpns",
		`"name":"b","type":"l3","admin_state_up":true,"route_targets":["64512:1"],` +
			`"import_targets":["64512:2"],"export_targets":["64512:3"],` +
			`"route_distinguishers":["64512:4"],"networks":["` + sharedID(4) + `"],` +
			`"routers":["` + sharedID(7) + `"]`,
		`"name":"c","type":"l3","networks":[],"routers":[]`,
	},
	{
		"lbaas/loadbalancers",
		"loadbalancer",
		"loadbalancers",
		`"name":"l","admin_state_up":true,"vip_address":"10.0.0.40",` +
			`"vip_subnet_id":"` + sharedID(5) + `","vip_port_id":"` + sharedID(6) + `"`,
		`"name":"m","admin_state_up":false,"vip_address":"10.0.0.40","vip_subnet_id":"` + sharedID(5) + `"`,
	},
	{
		"lbaas/listeners",
		"listener",
		"listeners",
		`"name":"l","admin_state_up":true,"protocol":"HTTP","protocol_port":80,` +
			`"connection_limit":10,"loadbalancers":[{"id":"` + sharedID(14) + `"}],` +
			`"default_pool_id":null`,
		`"name":"m","protocol":"HTTPS","protocol_port":443,"loadbalancers":[{"id":"` + sharedID(14) + `"}]`,
	},
	{
		"lbaas/pools",
		"pool",
		"pools",
		`"name":"p","admin_state_up":true,"protocol":"HTTP","lb_algorithm":"ROUND_ROBIN",` +
			`"listeners":[{"id":"` + sharedID(15) + `"}],` +
			`"session_persistence":{"type":"HTTP_COOKIE","cookie_name":"c"},"members":[]`,
		`"name":"q","admin_state_up":false,"protocol":"TCP","lb_algorithm":"LEAST_CONNECTIONS",` +
			`"listeners":[{"id":"` + sharedID(15) + `"}]`,
	},
	{
		"lbaas/healthmonitors",
		"healthmonitor",
		"healthmonitors",
		`"type":"HTTP","delay":5,"timeout":4,"max_retries":3,"http_method":"GET","url_path":"/",` +
			`"expected_codes":"200","admin_state_up":true,"pools":[{"id":"` + sharedID(16) + `"}]`,
		`"type":"PING","delay":6,"timeout":5,"max_retries":2,"admin_state_up":false,"pools":[]`,
	},
}

// northboundRequest is a request that the test sends to the real controller and to the stub, to compare their
// answers. Its name is unique.
type northboundRequest struct{ name, method, path, body string }

// requestList collects requests.
type requestList []northboundRequest

func (l *requestList) add(name, method, path, body string) {
	*l = append(*l, northboundRequest{name, method, path, body})
}

// northboundRequests returns all requests of the comparison, in the order in which the test sends them.
func northboundRequests() []northboundRequest {
	var l requestList
	l.addSharedObjects()
	for i, c := range collections {
		l.addCollection(i, c)
	}
	l.addRuleRequests()
	l.addPortRequests()
	l.addReferenceRequests()
	l.addMemberRequests()
	l.addListRequests()
	l.addUnknownPaths()
	return l
}

func (l *requestList) addSharedObjects() {
	l.add("shared group", "POST", "/security-groups",
		object("security_group", sharedID(3), `"name":"shared"`))
	l.add("shared network", "POST", "/networks", object("network", sharedID(4), `"name":"shared"`))
}

// object returns a request body with one object of the tenant.
func object(envelope, id, attributes string) string {
	return fmt.Sprintf(`{%q:{"id":%q,"tenant_id":%q,%s}}`, envelope, id, tenant, attributes)
}

// addCollection adds the requests that exist for every collection.
func (l *requestList) addCollection(i int, c collection) {
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-%012d", i+1, n) }
	add := func(name, method, path, body string) { l.add(c.envelope+": "+name, method, "/"+c.path+path, body) }
	one := "/" + id(1)

	add("list before the first create", "GET", "", "")
	add("create", "POST", "", object(c.envelope, id(1), c.attributes))
	add("read the created object", "GET", one, "")
	add("create the object again", "POST", "", object(c.envelope, id(1), c.attributes))
	add("read two fields", "GET", one+"?fields=id&fields=tenant_id", "")
	add("update", "PUT", one, object(c.envelope, id(1), c.changed+`,"revision_number":5`))
	add("read the updated object", "GET", one, "")
	add("update without id and tenant", "PUT", one,
		fmt.Sprintf(`{%q:{%s,"revision_number":6}}`, c.envelope, c.attributes))
	add("read after an update without id and tenant", "GET", one, "")
	add("update with an old revision", "PUT", one,
		object(c.envelope, id(1), c.changed+`,"revision_number":2`))
	add("read after an update with an old revision", "GET", one, "")
	add("update of an unknown object", "PUT", "/"+id(2), object(c.envelope, id(2), c.changed))
	add("update with another id", "PUT", one, object(c.envelope, id(3), c.changed+`,"revision_number":7`))
	add("read after an update with another id", "GET", one, "")
	add("update of a list", "PUT", one,
		fmt.Sprintf(`{%q:[{"id":%q,"tenant_id":%q,%s}]}`, c.plural, id(1), tenant, c.changed))
	add("update with an empty body", "PUT", one, "")
	add("update with an empty envelope", "PUT", one, "{}")
	add("update without JSON", "PUT", one, "{")
	add("read an unknown object", "GET", "/"+id(2), "")
	add("delete an unknown object", "DELETE", "/"+id(2), "")
	add("read an ID that is no UUID", "GET", "/nonsense", "")
	add("update an ID that is no UUID", "PUT", "/nonsense", object(c.envelope, id(2), c.changed))

	add("create with an ID that is no UUID", "POST", "", object(c.envelope, "nonsense", c.attributes))
	add("delete an ID that is no UUID", "DELETE", "/nonsense", "")
	add("create without an ID", "POST", "",
		fmt.Sprintf(`{%q:{"tenant_id":%q,%s}}`, c.envelope, tenant, c.attributes))
	add("create for a tenant that is no UUID", "POST", "",
		fmt.Sprintf(`{%q:{"id":%q,"tenant_id":"demo",%s}}`, c.envelope, id(4), c.attributes))
	add("delete the object of a tenant that is no UUID", "DELETE", "/"+id(4), "")
	add("create without a tenant", "POST", "",
		fmt.Sprintf(`{%q:{"id":%q,%s}}`, c.envelope, id(5), c.attributes))
	add("read the object without a tenant", "GET", "/"+id(5), "")
	add("create for an empty tenant", "POST", "",
		fmt.Sprintf(`{%q:{"id":%q,"tenant_id":"",%s}}`, c.envelope, id(6), c.attributes))
	add("create for a tenant without dashes", "POST", "", fmt.Sprintf(
		`{%q:{"id":%q,"tenant_id":%q,%s}}`,
		c.envelope, id(7), strings.ReplaceAll(tenant, "-", ""), c.attributes,
	))
	add("read the object of a tenant without dashes", "GET", "/"+id(7), "")
	add("create for a project", "POST", "",
		fmt.Sprintf(`{%q:{"id":%q,"project_id":%q,%s}}`, c.envelope, id(8), tenant, c.attributes))
	add("read the object of a project", "GET", "/"+id(8), "")
	add("create with an unknown attribute", "POST", "",
		object(c.envelope, id(9), c.attributes+`,"unknown_attribute":{"a":[1]}`))
	add("read the object with an unknown attribute", "GET", "/"+id(9), "")
	add("create with ID and tenant only", "POST", "",
		fmt.Sprintf(`{%q:{"id":%q,"tenant_id":%q}}`, c.envelope, id(10), tenant))
	add("create without JSON", "POST", "", "{")
	add("create with an empty body", "POST", "", "")
	add("create with an empty envelope", "POST", "", "{}")
	add("create with a list as body", "POST", "", "[]")
	add("create with a text as body", "POST", "", `"text"`)
	add("create with null as body", "POST", "", "null")
	add("update with a list as body", "PUT", one, "[]")
	add("create with text after the JSON", "POST", "", object(c.envelope, id(15), c.attributes)+"rest")
	add("create in another envelope", "POST", "", `{"thing":{"id":"`+id(11)+`"}}`)
	add("create an empty object", "POST", "", fmt.Sprintf(`{%q:{}}`, c.envelope))
	add("create two at once", "POST", "", fmt.Sprintf(
		`{%q:[{"id":%q,"tenant_id":%q,%s},{"id":%q,"tenant_id":%q,%s}]}`,
		c.plural, id(12), tenant, c.attributes, id(13), tenant, c.attributes,
	))
	add("create two of which one exists", "POST", "", fmt.Sprintf(
		`{%q:[{"id":%q,"tenant_id":%q,%s},{"id":%q,"tenant_id":%q,%s}]}`,
		c.plural, id(14), tenant, c.attributes, id(12), tenant, c.attributes,
	))
	add("create an empty list", "POST", "", fmt.Sprintf(`{%q:[]}`, c.plural))
	add("PUT to the collection", "PUT", "", object(c.envelope, id(1), c.changed))
	add("DELETE of the collection", "DELETE", "", "")
	add("PATCH", "PATCH", one, object(c.envelope, id(1), c.changed))
	add("POST to an object", "POST", one, object(c.envelope, id(1), c.changed))
	// incomplete objects, which the controller could not show in the lists below
	for _, n := range []int{10, 6} {
		add(fmt.Sprint("delete object ", n), "DELETE", "/"+id(n), "")
	}
	add("list", "GET", "", "")
	add("list with a filter", "GET", "?id="+id(12), "")
	add("list with fields", "GET", "?fields=id", "")
	add("delete", "DELETE", one, "")
	add("delete the object again", "DELETE", one, "")
	add("read the deleted object", "GET", one, "")
	add("list after the delete", "GET", "", "")
}

func (l *requestList) addRuleRequests() {
	for i, protocol := range []string{"tcp", "udp", "icmp", "icmpv6", "ipv6-icmp", "TCP", "sctp", "vrrp", "any", "", "6", "132", "255", "256", "-1", "nonsense"} {
		const attributes = `"security_group_id":%q,"direction":"ingress","ethertype":"IPv4","protocol":%q`
		l.add("rule with protocol "+protocol, "POST", "/security-group-rules", object(
			"security_group_rule",
			fmt.Sprintf("77777777-0000-4000-8000-%012d", i),
			fmt.Sprintf(attributes, sharedID(3), protocol),
		))
		l.add("read the rule with protocol "+protocol, "GET",
			fmt.Sprintf("/security-group-rules/77777777-0000-4000-8000-%012d", i), "")
	}
	for i, attributes := range []string{`"ethertype":"ipv4"`, `"ethertype":"IPv5"`, `"direction":"sideways"`, `"port_range_min":70000`, `"port_range_min":"80"`,
		`"protocol":6`, `"remote_ip_prefix":"nonsense"`, `"remote_ip_prefix":"2001:db8::/32"`} {
		l.add("rule with "+attributes, "POST", "/security-group-rules",
			object("security_group_rule", fmt.Sprintf("77777777-0000-4000-8000-%012d", 100+i),
				fmt.Sprintf(`"security_group_id":%q,%s`, sharedID(3), attributes)))
		l.add("read the rule with "+attributes, "GET",
			fmt.Sprintf("/security-group-rules/77777777-0000-4000-8000-%012d", 100+i), "")
	}
}

func (l *requestList) addPortRequests() {
	for i, attributes := range []string{`"binding:profile":{"a":1}`, `"binding:profile":{}`, `"binding:profile":{"a":{"b":1}}`, `"binding:profile":null`, `"binding:profile":""`,
		`"binding:vif_details":{"bound_drivers":{"0":"ovs"}}`, `"binding:vif_details":{"list":[1,2]}`, `"binding:vif_details":{"number":1,"text":"t","yes":true,"none":null}`,
		`"binding:vif_details":{"number":1}`, `"binding:vif_details":{"text":"t","none":null}`, `"binding:vif_details":{"none":null,"text":"t"}`, `"binding:vif_details":"text"`, `"binding:vif_details":[]`, `"security_groups":["` + sharedID(3) + `"]`, `"security_groups":null`, `"fixed_ips":null`,
		`"fixed_ips":[{"ip_address":"10.0.0.77"}]`, `"fixed_ips":[{"ip_address":"nonsense","subnet_id":"` + sharedID(5) + `"}]`, `"mac_address":"nonsense"`, `"mac_address":"FA:16:3E:00:00:AB"`,
		`"admin_state_up":"true"`, `"admin_state_up":1`, `"network_id":"nonsense"`, `"device_id":"not a UUID"`, `"name":7`, `"revision_number":"5"`, `"revision_number":-1`,
		`"allowed_address_pairs":[{"ip_address":"10.0.0.0/24"}]`, `"extra_dhcp_opts":[{"opt_name":"a"}]`, `"port_security_enabled":null`, `"qos_policy_id":"` + sharedID(17) + `"`} {
		body := `"network_id":"` + sharedID(4) + `","mac_address":"fa:16:3e:00:00:01",` + attributes
		id := fmt.Sprintf("66666666-0000-4000-8000-%012d", i)
		l.add("port with "+attributes, "POST", "/ports", object("port", id, body))
		l.add("read the port with "+attributes, "GET", "/ports/"+id, "")
		l.add("delete the port with "+attributes, "DELETE", "/ports/"+id, "")
	}
	const bare = "66666666-0000-4000-8000-000000000999"
	l.add("port without a MAC address", "POST", "/ports",
		object("port", bare, `"network_id":"`+sharedID(4)+`"`))
	l.add("read the port without a MAC address", "GET", "/ports/"+bare, "")
	l.add("list with a port without a MAC address", "GET", "/ports", "")
	l.add("delete the port without a MAC address", "DELETE", "/ports/"+bare, "")
	l.add("list after the delete of the port without a MAC address", "GET", "/ports", "")
}

// addReferenceRequests adds creates and updates whose references do not exist, and deletes of objects that
// others refer to.
func (l *requestList) addReferenceRequests() {
	const rule, network, group = "55555555-0000-4000-8000-000000000001", "55555555-0000-4000-8000-000000000002", "55555555-0000-4000-8000-000000000003"
	missing := sharedID(999)
	l.add("rule of an unknown group", "POST", "/security-group-rules",
		object("security_group_rule", rule, `"security_group_id":"`+missing+`"`))
	l.add("rule with an unknown remote group", "POST", "/security-group-rules", object(
		"security_group_rule",
		rule,
		`"security_group_id":"`+sharedID(3)+`","remote_group_id":"`+missing+`"`,
	))
	l.add("rule without a group", "POST", "/security-group-rules",
		object("security_group_rule", rule, `"direction":"ingress"`))
	l.add("rule of a group", "POST", "/security-group-rules", object(
		"security_group_rule",
		rule,
		`"security_group_id":"`+sharedID(3)+`","remote_group_id":"`+sharedID(3)+`"`,
	))
	l.add("move the rule to an unknown group", "PUT", "/security-group-rules/"+rule,
		object("security_group_rule", rule, `"security_group_id":"`+missing+`"`))
	l.add("network with an unknown policy", "POST", "/networks",
		object("network", network, `"name":"n","qos_policy_id":"`+missing+`"`))
	l.add("network without a policy", "POST", "/networks", object("network", network, `"name":"n"`))
	l.add("give the network an unknown policy", "PUT", "/networks/"+network,
		object("network", network, `"name":"n","qos_policy_id":"`+missing+`"`))
	l.add("group", "POST", "/security-groups", object("security_group", group, `"name":"n"`))
	l.add("rule in that group", "PUT", "/security-group-rules/"+rule,
		object("security_group_rule", rule, `"security_group_id":"`+group+`"`))
	l.add("delete the group of a rule", "DELETE", "/security-groups/"+group, "")
	l.add("read the rule of the deleted group", "GET", "/security-group-rules/"+rule, "")
	l.add("delete the rule of the deleted group", "DELETE", "/security-group-rules/"+rule, "")
	l.add("subnet of an unknown network", "POST", "/subnets",
		object("subnet", rule, `"network_id":"`+missing+`","ip_version":4,"cidr":"10.0.0.0/24"`))
	l.add("delete the subnet of an unknown network", "DELETE", "/subnets/"+rule, "")
	for i, attributes := range []string{`"ip_version":6,"cidr":"2001:db8::/64","ipv6_address_mode":"slaac","ipv6_ra_mode":"dhcpv6-stateful"`, `"ip_version":5,"cidr":"10.0.0.0/24"`,
		`"ip_version":"4","cidr":"10.0.0.0/24"`, `"cidr":"nonsense"`, `"cidr":"10.0.0.5/24"`, `"ip_version":4`, `"ip_version":4,"cidr":"10.0.0.0/24","gateway_ip":"nonsense"`,
		`"ip_version":4,"cidr":"10.0.0.0/24","ipv6_ra_mode":"nonsense"`} {
		id := fmt.Sprintf("55555555-0000-4000-8000-%012d", 100+i)
		l.add("subnet with "+attributes, "POST", "/subnets",
			object("subnet", id, `"network_id":"`+sharedID(4)+`",`+attributes))
		l.add("read the subnet with "+attributes, "GET", "/subnets/"+id, "")
		l.add("delete the subnet with "+attributes, "DELETE", "/subnets/"+id, "")
	}
	for i, attributes := range []string{`"provider:network_type":"local"`, `"provider:network_type":"gre"`, `"provider:network_type":"geneve"`, `"provider:network_type":"nonsense"`,
		`"provider:segmentation_id":"7"`, `"provider:segmentation_id":null`, `"mtu":"1450"`, `"segments":[{"provider:network_type":"vlan","provider:segmentation_id":3}]`,
		`"admin_state_up":null`, `"status":"DOWN"`, `"vlan_transparent":true`, `"shared":"yes"`} {
		id := fmt.Sprintf("55555555-0000-4000-8000-%012d", 200+i)
		l.add("network with "+attributes, "POST", "/networks",
			object("network", id, `"name":"n",`+attributes))
		l.add("read the network with "+attributes, "GET", "/networks/"+id, "")
		l.add("delete the network with "+attributes, "DELETE", "/networks/"+id, "")
	}
}

func (l *requestList) addMemberRequests() {
	const pool, missing = "44444444-0000-4000-8000-000000000001", "44444444-0000-4000-8000-000000000002"
	member := func(n int) string { return fmt.Sprintf("44444444-0000-4000-8000-%012d", 10+n) }
	body := func(n int, more string) string {
		attributes := `"address":"10.0.0.50","protocol_port":80,"weight":1,"admin_state_up":true,` +
			`"subnet_id":"` + sharedID(5) + `"` + more
		return object("member", member(n), attributes)
	}
	in := func(pool string) string { return "/lbaas/pools/" + pool + "/members" }
	poolWith := func(member string) string {
		return `"name":"q","protocol":"HTTP","lb_algorithm":"ROUND_ROBIN","members":[{"id":"` + member + `",` +
			`"tenant_id":"` + tenant + `","address":"10.0.0.53","protocol_port":83}]`
	}
	firstPool := object("pool", sharedID(20), poolWith(sharedID(21)))
	l.add("create a pool with a member", "POST", "/lbaas/pools", firstPool)
	l.add("read the pool with a member", "GET", "/lbaas/pools/"+sharedID(20), "")
	l.add("delete the pool with a member", "DELETE", "/lbaas/pools/"+sharedID(20), "")
	l.add("members of an unknown pool", "GET", in(missing), "")
	l.add("create a member of an unknown pool", "POST", in(missing), body(1, ""))
	l.add("create the pool of members", "POST", "/lbaas/pools",
		object("pool", pool, `"name":"p","protocol":"HTTP","lb_algorithm":"ROUND_ROBIN"`))
	l.add("members of a new pool", "GET", in(pool), "")
	l.add("create a member", "POST", in(pool), body(1, ""))
	l.add("create the member again", "POST", in(pool), body(1, ""))
	l.add("read the member", "GET", in(pool)+"/"+member(1), "")
	l.add("members", "GET", in(pool), "")
	l.add("the pool of the member", "GET", "/lbaas/pools/"+pool, "")
	l.add("update the member", "PUT", in(pool)+"/"+member(1), body(1, `,"weight":7`))
	l.add("read the updated member", "GET", in(pool)+"/"+member(1), "")
	l.add("update an unknown member", "PUT", in(pool)+"/"+member(2), body(2, ""))
	l.add("members after an update of an unknown member", "GET", in(pool), "")
	l.add("read an unknown member", "GET", in(pool)+"/"+member(3), "")
	l.add("delete an unknown member", "DELETE", in(pool)+"/"+member(3), "")
	two := `{"members":[` +
		`{"id":"` + member(4) + `","tenant_id":"` + tenant + `","address":"10.0.0.51","protocol_port":81},` +
		`{"id":"` + member(5) + `","tenant_id":"` + tenant + `","address":"10.0.0.52","protocol_port":82}]}`
	l.add("create two members", "POST", in(pool), two)
	l.add("members after a create of two", "GET", in(pool), "")
	l.add("create a member without an ID", "POST", in(pool),
		`{"member":{"tenant_id":"`+tenant+`","address":"10.0.0.51"}}`)
	l.add("create a member without JSON", "POST", in(pool), `{`)
	l.add("create a member in another envelope", "POST", in(pool), `{"thing":{}}`)
	l.add("delete a member", "DELETE", in(pool)+"/"+member(1), "")
	l.add("delete the member again", "DELETE", in(pool)+"/"+member(1), "")
	l.add("update the pool without members", "PUT", "/lbaas/pools/"+pool,
		object("pool", pool, `"name":"q","protocol":"HTTP","lb_algorithm":"ROUND_ROBIN"`))
	l.add("members after an update of the pool", "GET", in(pool), "")
	changedPool := object("pool", pool, poolWith(member(6)))
	l.add("update the pool with a member", "PUT", "/lbaas/pools/"+pool, changedPool)
	l.add("members after an update of the pool with a member", "GET", in(pool), "")
	l.add("read the pool after an update with a member", "GET", "/lbaas/pools/"+pool, "")
	l.add("delete the pool of members", "DELETE", "/lbaas/pools/"+pool, "")
	l.add("delete a member of the deleted pool", "DELETE", in(pool)+"/"+member(6), "")
	l.add("read a member of the deleted pool", "GET", in(pool)+"/"+member(6), "")
	l.add("update a member of the deleted pool", "PUT", in(pool)+"/"+member(6), body(6, ""))
}

// addListRequests adds requests that list networks with filters and in pages.
func (l *requestList) addListRequests() {
	for n := range 5 {
		l.add(fmt.Sprint("network ", n, " of a list"), "POST", "/networks", object(
			"network",
			fmt.Sprintf("33333333-0000-4000-8000-%012d", n),
			fmt.Sprintf(`"name":"listed","admin_state_up":%v`, n%2 == 0),
		))
	}
	for _, query := range []string{"name=listed", "name=absent", "name=listed&admin_state_up=true", "name=listed&fields=name", "name=listed&fields=nonsense", "nonsense=1",
		"limit=nonsense", "limit=0", "limit=-1", "limit=2&marker=nonsense", "limit=2&marker=33333333-0000-4000-8000-000000000999", "tenant_id=" + tenant, "shared=false&name=listed"} {
		l.add("networks with "+query, "GET", "/networks?"+query, "")
	}
}

func (l *requestList) addUnknownPaths() {
	for _, path := range []string{"", "/nonsense", "/networks/", "/networks/" + sharedID(4) + "/ports", "/lbaas", "/lbaas/nonsense", "/qos", "/members"} {
		l.add("GET "+path+" (no collection)", "GET", path, "")
		l.add("POST "+path+" (no collection)", "POST", path, `{"network":{}}`)
	}
}
