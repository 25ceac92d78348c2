package neutron_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestRequest_InvalidInputErrors(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/29")
	other, _ := c.createNetwork("10.9.0.0/24")
	p := c.port(
		net,
		`,"name":"web","fixed_ips":[{"ip_address":"10.0.0.3"}],"mac_address":"fa:16:3e:00:00:01","binding:host_id":"cmp-1"`,
	)
	port := "/v2.0/ports/" + p["id"].(string)
	onNet := func(more string) string { return fmt.Sprintf(`{"port":{"network_id":%q,%s}}`, net, more) }
	sub := func(more string) string { return fmt.Sprintf(`{"subnet":{"network_id":%q,%s}}`, other, more) }
	const unknownID = "00000000-0000-4000-8000-000000000000"

	for _, tc := range []struct{ method, path, body, want string }{
		{"POST", "/v2.0/networks", `{`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", ``, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `null`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `[]`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":null}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":"x"}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"port":{}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{},"port":{}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{}} x`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"name":"a","name":"b"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", strings.Repeat(`[`, 5000), "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"networks":[]}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"networks":{}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"nam":"x"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"status":"ACTIVE"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"name":7}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"name":null}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"name":"a\u0000b"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"name":"` + strings.Repeat("é", 256) + `"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`, "413 HTTPRequestEntityTooLarge"},
		{"POST", "/v2.0/networks", `{"network":{"admin_state_up":"maybe"}}`, "400 InvalidInput"},
		{"POST", "/v2.0/networks", `{"network":{"mtu":-1}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"project_id":"a","tenant_id":"b"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/networks", `{"network":{"provider:network_type":"tape"}}`, "400 InvalidInput"},
		{"POST", "/v2.0/networks", `{"network":{"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":5000}}`, "400 InvalidInput"},
		{"PUT", "/v2.0/networks/" + net, `{"network":{"id":"x"}}`, "400 HTTPBadRequest"},
		{"PUT", "/v2.0/networks/" + net, `{"networks":[{}]}`, "400 HTTPBadRequest"},
		{"DELETE", "/v2.0/networks/" + net, ``, "409 NetworkInUse"},
		{"GET", "/v2.0/networks/blue", ``, "404 NetworkNotFound"},
		{"GET", "/v2.0/networks/" + unknownID, ``, "404 NetworkNotFound"},
		{"GET", "/v2.0/networks/%00", ``, "404 HTTPNotFound"},
		{"PUT", "/v2.0/networks/" + unknownID, `{"network":{}}`, "404 NetworkNotFound"},
		{"GET", "/v2.0/moons", ``, "404 HTTPNotFound"},
		{"PATCH", "/v2.0/networks", ``, "405 HTTPMethodNotAllowed"},
		{"GET", "/v2.0/extensions/moon", ``, "404 ExtensionNotFound"},

		{"POST", "/v2.0/subnets", `{"subnet":{"ip_version":4,"cidr":"10.1.0.0/24"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/subnets", sub(`"cidr":"10.1.0.0/24"`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":5,"cidr":"10.1.0.0/24"`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4`), "400 BadRequest"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":6,"cidr":"10.1.0.0/24"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.9.0.128/25"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/31"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","gateway_ip":"fe80::1"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","allocation_pools":[{"start":"10.2.0.1","end":"10.2.0.9"}]`), "400 OutOfBoundsAllocationPool"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","allocation_pools":[{"start":"10.1.0.9","end":"10.1.0.5"}]`), "400 InvalidAllocationPool"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","allocation_pools":[{"start":"10.1.0.5"}]`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","allocation_pools":[{"start":"10.1.0.5","end":"10.1.0.9"},{"start":"10.1.0.9","end":"10.1.0.12"}]`), "409 OverlappingAllocationPools"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","allocation_pools":[{"start":"10.1.0.1","end":"10.1.0.9"}]`), "409 GatewayConflictWithAllocationPools"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","gateway_ip":"10.1.0.0"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","gateway_ip":"10.1.0.255"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":6,"cidr":"fd00::/127"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":6,"cidr":"fd00::/64","ipv6_address_mode":"slaac","enable_dhcp":false`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"224.0.0.0/24"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"127.0.0.0/24"`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","dns_nameservers":["9.9.9.0","9.9.9.1","9.9.9.2","9.9.9.3","9.9.9.4","9.9.9.5"]`), "400 DNSNameServersExhausted"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","dns_nameservers":["9.9.9.9","9.9.9.9"]`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","host_routes":[` + strings.Repeat(`{"destination":"10.8.0.0/24","nexthop":"10.1.0.9"},`, 20) + `{"destination":"10.7.0.0/24","nexthop":"10.1.0.9"}]`), "400 HostRoutesExhausted"},
		{"POST", "/v2.0/subnets", sub(`"ip_version":4,"cidr":"10.1.0.0/24","host_routes":[{"destination":"10.8.0.0/24","nexthop":"10.1.0.9"},{"destination":"10.8.0.0/24","nexthop":"10.1.0.9"}]`), "400 InvalidInput"},
		{"POST", "/v2.0/subnets", `{"subnet":{"network_id":"` + unknownID + `","ip_version":4,"cidr":"10.1.0.0/24"}}`, "404 NetworkNotFound"},
		{"DELETE", "/v2.0/subnets/" + subnet, ``, "409 SubnetInUse"},

		{"POST", "/v2.0/ports", `{"port":{}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", `{"port":{"network_id":"x"}}`, "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", `{"port":{"network_id":"` + unknownID + `"}}`, "404 NetworkNotFound"},
		{"POST", "/v2.0/ports", onNet(`"status":"ACTIVE"`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"mac_address":"ff:ff:ff:ff:ff:ff"`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"mac_address":"fa:16:3e:00:00:01"`), "409 MacAddressInUse"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":{}`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{}]`), "400 InvalidInput"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"ip":"10.0.0.4"}]`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"ip_address":"::ffff:10.0.0.4"}]`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"ip_address":"10.0.0.3"}]`), "409 IpAddressAlreadyAllocated"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"ip_address":"10.0.0.4"},{"ip_address":"10.0.0.4"}]`), "400 InvalidInput"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"ip_address":"10.0.0.7"}]`), "400 InvalidIpForNetwork"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"subnet_id":"` + subnet + `","ip_address":"10.7.0.7"}]`), "400 InvalidIpForSubnet"},
		{"POST", "/v2.0/ports", onNet(`"fixed_ips":[{"subnet_id":"` + unknownID + `"}]`), "404 SubnetNotFound"},
		{"POST", "/v2.0/ports", onNet(`"binding:vnic_type":"wood"`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"binding:vnic_type":null`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":""}]`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"binding:profile":[]`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"binding:profile":{"a":1e999999}`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"binding:profile":{"a":"\u0000"}`), "400 HTTPBadRequest"},
		{"POST", "/v2.0/ports", onNet(`"security_groups":["` + unknownID + `"]`), "404 SecurityGroupNotFound"},
		{"PUT", port, `{"port":{"mac_address":"fa:16:3e:00:00:02"}}`, "409 PortBound"},
		{"PUT", port, `{"port":{"mac_address":null}}`, "409 PortBound"},
		{"PUT", port, `{"port":{"status":"ACTIVE"}}`, "400 HTTPBadRequest"},
		{"PUT", port, `{"port":{"network_id":"` + net + `"}}`, "400 HTTPBadRequest"},

		{"GET", "/v2.0/ports?x=1", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?name=%00", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?name=%ff", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?limit=-1", ``, "400 BadRequest"},
		{"GET", "/v2.0/ports?limit=ten", ``, "400 BadRequest"},
		{"GET", "/v2.0/ports?marker=" + unknownID, ``, "404 PortNotFound"},
		{"GET", "/v2.0/ports?marker=x", ``, "404 PortNotFound"},
		{"GET", "/v2.0/ports?sort_key=moon&sort_dir=asc", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?sort_key=name&sort_dir=up", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?sort_key=name&sort_key=id&sort_dir=asc", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?sort_key=name", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?fixed_ips=moon=1", ``, "400 HTTPBadRequest"},
		{"GET", "/v2.0/ports?admin_state_up=maybe", ``, "400 InvalidInput"},
		{"GET", "/v2.0/ports?revision_number=x", ``, "400 InvalidInput"},
		{"GET", "/v2.0/network-ip-availabilities?ip_version=x", ``, "400 InvalidInput"},

		{"GET", "/v2.0/agents/" + unknownID, ``, "404 AgentNotFound"},
		{"POST", "/v2.0/agents", `{}`, "405 HTTPMethodNotAllowed"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault(tc.method, tc.path, tc.body); got != tc.want {
				t.Errorf("%s %s with the body %.120s: want %s, got %s",
					tc.method, tc.path, tc.body, tc.want, got)
			}
		})
	}
	if got := c.as("").fault("GET", "/v2.0/ports", ""); got != "401 HTTPUnauthorized" {
		t.Errorf("list ports without a token: got %s, want 401 HTTPUnauthorized", got)
	}
	if got := c.fault("POST", "/v2.0/networks", `{"network":{}}`, "Content-Type", "text/plain"); got != "400 HTTPBadRequest" {
		t.Errorf("create a network with the Content-Type text/plain: got %s, want 400 HTTPBadRequest", got)
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/ports", ""), "ports")); n != 1 {
		t.Errorf("ports after refused requests: got %d, want 1", n)
	}
}

// An item of a bulk request may have the form of a single object's body.
func TestBulkCreate_ItemsMayBeWrapped(t *testing.T) {
	t.Parallel()
	c := open(t)
	o := c.must(201, "POST", "/v2.0/networks", `{"networks":[{"network":{"name":"b"}},{"name":"a"}]}`)["networks"].([]any)
	if len(o) != 2 || o[0].(object)["name"] != "b" || o[1].(object)["name"] != "a" {
		t.Errorf("networks created in one request, one of them wrapped: got %v, want b and a", o)
	}
	for _, body := range []string{`{"networks":[{"network":null}]}`, `{"networks":[{"network":{"network":{}}}]}`, `{"networks":[{"port":{}}]}`, `{"networks":["network"]}`, `{"networks":[7]}`} {
		t.Run(body, func(t *testing.T) {
			if got := c.in(t).fault("POST", "/v2.0/networks", body); got != "400 HTTPBadRequest" {
				t.Errorf("create networks with the body %s: got %s, want 400 HTTPBadRequest", body, got)
			}
		})
	}
}

func TestBulkCreate_AllOrNothing(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/29")
	item := func(name, more string) string { return fmt.Sprintf(`{"network_id":%q,"name":%q%s}`, net, name, more) }

	o := c.must(201, "POST", "/v2.0/ports", `{"ports":[`+item("b", "")+`,`+item("a", "")+`]}`)["ports"].([]any)
	if o[0].(object)["name"] != "b" || o[1].(object)["name"] != "a" {
		t.Errorf("ports created in one request: got %v, want them in the order of the request", o)
	}
	taken := o[0].(object)["fixed_ips"].([]any)[0].(object)["ip_address"].(string)
	got := c.fault("POST", "/v2.0/ports",
		`{"ports":[`+item("c", "")+`,`+item("d", `,"fixed_ips":[{"ip_address":"`+taken+`"}]`)+`]}`)
	if got != "409 IpAddressAlreadyAllocated" {
		t.Errorf(
			"create two ports, one with an address in use: got %s, want 409 IpAddressAlreadyAllocated",
			got,
		)
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/ports", ""), "ports")); n != 2 {
		t.Errorf("ports after a refused bulk creation: got %d, want 2", n)
	}
}
