package neutron_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

func TestSubnet_IPv6ModesMustAgree(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64"}}`, net))["subnet"].(object)
	want := object{"start": "fd00::1", "end": "fd00::ffff:ffff:ffff:ffff"}
	if d := cmp.Diff(want, six["allocation_pools"].([]any)[0]); d != "" || six["gateway_ip"] != "fd00::" {
		t.Errorf("IPv6 subnet: got gateway %v, want fd00::; allocation pool (-want +got):\n%s",
			six["gateway_ip"], d)
	}
	for more, want := range map[string]string{
		`"ip_version":6,"cidr":"fd01::/64","dns_nameservers":["9.9.9.9"]`:  "400 InvalidInput",
		`"ip_version":4,"cidr":"10.1.0.0/24","dns_nameservers":["fd00::"]`: "400 InvalidInput",
		`"ip_version":4,"cidr":"0.0.0.0/24"`:                               "400 InvalidInput",
		`"ip_version":6,"cidr":"fd01::/80","ipv6_ra_mode":"slaac"`:         "400 InvalidInput",
	} {
		t.Run(more, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,%s}}`, net, more)); got != want {
				t.Errorf("create a subnet with %s: want %s, got %s", more, want, got)
			}
		})
	}
}

func TestSubnet_GatewayCannotChangeWhileRouterUsesIt(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	path := "/v2.0/subnets/" + subnet
	router := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:router_interface","fixed_ips":[{"ip_address":"10.0.0.1"}]`)["id"].(string)
	c.port(net, `,"fixed_ips":[{"ip_address":"10.0.0.9"}]`)
	c.must(
		200, "PUT", path,
		`{"subnet":{"allocation_pools":[{"start":"10.0.0.20","end":"10.0.0.30"}],"gateway_ip":"10.0.0.1"}}`,
	)

	if got := c.fault("PUT", path, `{"subnet":{"gateway_ip":"10.0.0.9"}}`); got != "409 GatewayIpInUse" {
		t.Errorf(
			"change the gateway while a router port has its address: got %s, want 409 GatewayIpInUse",
			got,
		)
	}
	c.must(204, "DELETE", router, "")
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":"10.0.0.9"}}`)
	// the port with this address is not a router port
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":"10.0.0.10"}}`)
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":null}}`)
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":"10.0.0.1"}}`)
}

func TestSubnet_FilteredByTheNetworksShared(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, private := c.createNetwork("10.0.0.0/24")
	sharedNet, shared := c.createNetwork("10.1.0.0/24")
	c.must(200, "PUT", "/v2.0/networks/"+sharedNet, `{"network":{"shared":true}}`)
	for query, want := range map[string][]string{
		"shared=True":                         {shared},
		"shared=false":                        {private},
		"shared=0&network_id=" + sharedNet:    {},
		"shared=1&shared=0&network_id=" + net: {private},
	} {
		t.Run(query, func(t *testing.T) {
			if d := cmp.Diff(want, ids(c.in(t).must(200, "GET", "/v2.0/subnets?"+query, ""), "subnets")); d != "" {
				t.Errorf("list subnets with the query %s (-want +got):\n%s", query, d)
			}
		})
	}
	if got := c.fault("GET", "/v2.0/subnets?shared=maybe", ""); got != "400 InvalidInput" {
		t.Errorf("list subnets with shared=maybe: got %s, want 400 InvalidInput", got)
	}
	if got, ok := c.must(200, "GET", "/v2.0/subnets/"+shared, "")["subnet"].(object)["shared"]; ok {
		t.Errorf("attribute shared of a subnet: got %v, want no such attribute", got)
	}
}

// IPv4 requires an MTU of at least 68 bytes, and IPv6 requires at least 1280 bytes.
func TestSubnet_NeedsTheNetworksMTU(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{"mtu":1279}}`)["network"].(object)["id"].(string)
	subnet := func(version int, cidr string) string {
		return fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":%d,"cidr":%q}}`, net, version, cidr)
	}
	want := "409 NetworkMTUSubnetConflict: MTU of " + net + " is not valid, subnet requires a minimum of 1280"
	c.must(201, "POST", "/v2.0/subnets", subnet(4, "10.0.0.0/24"))
	if got := c.faultMessage("POST", "/v2.0/subnets", subnet(6, "fd00::/64")); got != want {
		t.Errorf("create an IPv6 subnet on a network with the MTU 1279: want %s, got %s", want, got)
	}
	c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{"mtu":1280}}`)
	c.must(201, "POST", "/v2.0/subnets", subnet(6, "fd00::/64"))
	if got := c.faultMessage("PUT", "/v2.0/networks/"+net, `{"network":{"mtu":1279}}`); got != want {
		t.Errorf("lower the MTU of a network with an IPv6 subnet to 1279: want %s, got %s", want, got)
	}
	if got := c.fault("PUT", "/v2.0/networks/"+net, `{"network":{"mtu":67}}`); got != "409 NetworkMTUSubnetConflict" {
		t.Errorf(
			"lower the MTU of a network with subnets to 67: got %s, want 409 NetworkMTUSubnetConflict",
			got,
		)
	}
	net = c.must(201, "POST", "/v2.0/networks", `{"network":{"mtu":67}}`)["network"].(object)["id"].(string)
	if got := c.fault("POST", "/v2.0/subnets", subnet(4, "10.0.0.0/24")); got != "409 NetworkMTUSubnetConflict" {
		t.Errorf(
			"create an IPv4 subnet on a network with the MTU 67: got %s, want 409 NetworkMTUSubnetConflict",
			got,
		)
	}
}

func TestSubnet_DeleteRemovesSLAACAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64","ipv6_address_mode":"slaac"}}`, net))["subnet"].(object)["id"].(string)
	before := c.port(net, `,"binding:host_id":"cmp-1","device_owner":"compute:nova"`)
	path := "/v2.0/ports/" + before["id"].(string)
	router := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:router_interface","fixed_ips":[{"subnet_id":"`+six+`"}]`)["id"].(string)
	if n := len(before["fixed_ips"].([]any)); n != 2 {
		t.Fatalf("addresses of the port before its subnet is deleted: got %d, want 2", n)
	}

	if got := c.fault("DELETE", "/v2.0/subnets/"+six, ""); got != "409 SubnetInUse" {
		t.Errorf("delete the subnet of a router port: got %s, want 409 SubnetInUse", got)
	}
	c.must(204, "DELETE", router, "")
	c.must(204, "DELETE", "/v2.0/subnets/"+six, "")

	after := c.must(200, "GET", path, "")["port"].(object)
	if d := cmp.Diff(before["fixed_ips"].([]any)[:1], after["fixed_ips"].([]any)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before["berth:why"], after["berth:why"]); d != "" {
		t.Errorf(
			"berth:why of the port: want the same value before and after the deletion of a subnet (-before +after):\n%s",
			d,
		)
	}
}

func TestSubnet_DeleteRacesWithPortDelete(t *testing.T) {
	t.Parallel()
	c := open(t)
	for range 5 {
		net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
		six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(
			`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64","ipv6_address_mode":"slaac"}}`,
			net,
		))
		paths := []string{"/v2.0/subnets/" + six["subnet"].(object)["id"].(string)}
		for range 6 {
			paths = append(paths, "/v2.0/ports/"+c.port(net, `,"device_owner":"network:dhcp"`)["id"].(string))
		}
		var requests sync.WaitGroup
		for _, path := range paths {
			requests.Go(func() {
				if status, o, _ := c.raw("DELETE", path, ""); status != 204 {
					t.Errorf("DELETE %s: got %d %v, want 204", path, status, o)
				}
			})
		}
		requests.Wait()
		c.must(204, "DELETE", "/v2.0/networks/"+net, "")
	}
}

// A port gets addresses from the subnets whose service types include its device owner, before the subnets
// without service types.
func TestSubnet_ServiceTypesChooseThePorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, plain := c.createNetwork("10.0.0.0/24")
	subnet := func(net, cidr, types string) string {
		t.Helper()
		return c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":4,"cidr":%q,"service_types":%s}}`, net, cidr, types))["subnet"].(object)["id"].(string)
	}
	gateways := subnet(net, "10.1.0.0/24", `["network:router_gateway","compute:special"]`)
	subnetOf := func(p object) string { return p["fixed_ips"].([]any)[0].(object)["subnet_id"].(string) }
	owned := func(owner string) string { return `,"device_owner":"` + owner + `"` }

	for owner, want := range map[string]string{
		"":                       plain,
		"compute:nova":           plain,
		"compute:special":        gateways,
		"network:router_gateway": gateways,
		"network:dhcp":           gateways,
	} {
		t.Run(owner, func(t *testing.T) {
			p := c.in(t).port(net, owned(owner))
			if got := subnetOf(p); got != want || len(p["fixed_ips"].([]any)) != 1 {
				t.Errorf("subnet of a port with the device owner %q: got %v, want only %s",
					owner, p["fixed_ips"], want)
			}
		})
	}
	named := fmt.Sprintf(
		`{"port":{"network_id":%q,"device_owner":"compute:nova","fixed_ips":[{"subnet_id":%q}]}}`,
		net,
		gateways,
	)
	if got := c.fault("POST", "/v2.0/ports", named); got != "400 InvalidInput" {
		t.Errorf(
			"create a port that names a subnet with other service types: got %s, want 400 InvalidInput",
			got,
		)
	}

	held := c.port(net, owned("compute:special"))
	path := "/v2.0/ports/" + held["id"].(string)
	p := c.must(200, "PUT", path, `{"port":{"device_owner":"compute:nova","fixed_ips":[{"subnet_id":"`+gateways+`"}]}}`)["port"].(object)
	if subnetOf(p) != gateways {
		t.Errorf("a port keeps its address when its device owner changes: got %v, want the subnet %s",
			p["fixed_ips"], gateways)
	}

	changed := c.must(200, "PUT", "/v2.0/subnets/"+plain, `{"subnet":{"service_types":["compute:nova"]}}`)["subnet"].(object)
	if d := cmp.Diff([]any{"compute:nova"}, changed["service_types"]); d != "" {
		t.Errorf("service types of the subnet (-want +got):\n%s", d)
	}
	want := "409 IpAddressGenerationFailureNoMatchingSubnet: No valid service subnet for the given device owner, network " + net + ", service type baremetal:x."
	if got := c.faultMessage("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"device_owner":"baremetal:x"}}`, net)); got != want {
		t.Errorf("create a port for which no subnet is: want %s, got %s", want, got)
	}
	c.must(200, "PUT", "/v2.0/subnets/"+plain, `{"subnet":{"service_types":null}}`)
	if got := subnetOf(c.port(net, owned("baremetal:x"))); got != plain {
		t.Errorf("subnet of a port after the service types were removed: got %s, want %s", got, plain)
	}
}

func TestSubnet_InvalidServiceTypes(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, subnet := c.createNetwork("10.0.0.0/24")
	for types, want := range map[string]string{
		`["web:x"]`:                 "400 InvalidSubnetServiceType: Subnet service type web:x does not correspond to a valid device owner.",
		`[7]`:                       "400 InvalidInputSubnetServiceType: Subnet service type 7 is not a string.",
		`["compute:x","compute:x"]`: "400 HTTPBadRequest: Invalid input for service_types. Reason: Duplicate items in the list: 'compute:x'.",
		`"compute:x"`:               "400 HTTPBadRequest: Invalid input for service_types. Reason: 'compute:x' is not a list.",
	} {
		t.Run(types, func(t *testing.T) {
			if got := c.in(t).faultMessage("PUT", "/v2.0/subnets/"+subnet, `{"subnet":{"service_types":`+types+`}}`); got != want {
				t.Errorf("set the service types %s: want %s, got %s", types, want, got)
			}
		})
	}
}

func TestSubnet_BeginsNotWithTheUnspecifiedAddress(t *testing.T) {
	t.Parallel()
	c := open(t)
	for cidr, want := range map[string]string{
		"::/64":      "400 InvalidInput",
		"::/48":      "400 InvalidInput",
		"::/128":     "400 InvalidInput",
		"::1/64":     "400 InvalidInput",
		"::/1":       "400 InvalidInput",
		"fd00::1/64": "",
	} {
		for _, more := range []string{"", `,"enable_dhcp":false,"gateway_ip":null`} {
			t.Run(cidr+more, func(t *testing.T) {
				c := c.in(t)
				net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
				body := fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":%q%s}}`,
					net, cidr, more)
				if want == "" {
					c.must(201, "POST", "/v2.0/subnets", body)
				} else if got := c.fault("POST", "/v2.0/subnets", body); got != want {
					t.Errorf("create a subnet with %s: want %s, got %s", body, want, got)
				}
			})
		}
	}
}

// A DHCP agent cannot give its device a multicast address, and then synchronizes all its networks again and
// again.
func TestSubnet_WithDHCPContainsNoMulticastAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	for cidr, want := range map[string]string{
		"224.0.0.0/24": "400 InvalidInput",
		"192.0.0.0/2":  "400 InvalidInput",
		"ff02::/64":    "400 InvalidInput",
		"fe00::/7":     "400 InvalidInput",
		"223.0.0.0/8":  "",
		"fe00::/9":     "",
	} {
		t.Run(cidr, func(t *testing.T) {
			c := c.in(t)
			net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
			version := 4
			if strings.Contains(cidr, ":") {
				version = 6
			}
			body := func(dhcp bool) string {
				return fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":%d,"cidr":%q,"gateway_ip":null,"enable_dhcp":%t}}`, net, version, cidr, dhcp)
			}
			if want == "" {
				c.must(201, "POST", "/v2.0/subnets", body(true))
				return
			}
			if got := c.fault("POST", "/v2.0/subnets", body(true)); got != want {
				t.Errorf("create a subnet with DHCP: want %s, got %s", want, got)
			}
			id := c.must(201, "POST", "/v2.0/subnets", body(false))["subnet"].(object)["id"].(string)
			if got := c.fault("PUT", "/v2.0/subnets/"+id, `{"subnet":{"enable_dhcp":true}}`); got != want {
				t.Errorf("enable DHCP of the subnet: want %s, got %s", want, got)
			}
		})
	}
}

// The kernel of a DHCP agent's host accepts the addresses and the gateways of such a subnet.
func TestSubnet_WithDHCPHasAddressesThatAHostAccepts(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, tc := range []struct{ cidr, gateway, want string }{
		{"126.0.0.0/7", "126.0.0.1", "400 InvalidInput"},
		{"127.1.0.0/24", "127.1.0.1", "400 InvalidInput"},
		{"fe80::/64", "fe80::1", "400 InvalidInput"},
		{"10.0.0.0/24", "224.0.0.1", "400 InvalidInput"},
		{"10.0.0.0/24", "127.0.0.1", "400 InvalidInput"},
		{"10.0.0.0/24", "0.0.0.0", "400 InvalidInput"},
		{"10.0.0.0/24", "255.255.255.255", "400 InvalidInput"},
		{"fd00::/64", "::1", "400 InvalidInput"},
		{"fd00::/64", "::", "400 InvalidInput"},
		{"fd00::/64", "ff02::1", "400 InvalidInput"},
		{"fd00::/64", "fe80::1", ""},
		{"10.0.0.0/24", "10.9.0.1", ""},
		{"10.0.0.0/24", "169.254.0.1", ""},
	} {
		t.Run(tc.cidr+" "+tc.gateway, func(t *testing.T) {
			c := c.in(t)
			net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
			version := 4
			if strings.Contains(tc.cidr, ":") {
				version = 6
			}
			body := func(dhcp bool) string {
				return fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":%d,"cidr":%q,"gateway_ip":%q,"enable_dhcp":%t}}`,
					net, version, tc.cidr, tc.gateway, dhcp)
			}
			if tc.want == "" {
				c.must(201, "POST", "/v2.0/subnets", body(true))
				return
			}
			id := c.must(201, "POST", "/v2.0/subnets", body(false))["subnet"].(object)["id"].(string)
			if got := c.fault("PUT", "/v2.0/subnets/"+id, `{"subnet":{"enable_dhcp":true}}`); got != tc.want {
				t.Errorf("enable DHCP of the subnet: want %s, got %s", tc.want, got)
			}
			c.must(204, "DELETE", "/v2.0/subnets/"+id, "")
			if got := c.fault("POST", "/v2.0/subnets", body(true)); got != tc.want {
				t.Errorf("create the subnet with DHCP: want %s, got %s", tc.want, got)
			}
		})
	}
}

// Earlier versions of berth accepted subnets with DHCP that a DHCP agent cannot serve.
func TestSubnet_ThatNoAgentServesCanStillBeRenamed(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	c := openOn(t, url, networkstore.Config{})
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
	path := "/v2.0/subnets/" + c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(
		`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fe80::/64","enable_dhcp":false}}`, net))["subnet"].(object)["id"].(string)
	storetest.Exec(t, url, `update subnet set dhcp = true`)

	c.must(200, "PUT", path, `{"subnet":{"name":"old"}}`)
	if got := c.fault("PUT", path, `{"subnet":{"enable_dhcp":true}}`); got != "400 InvalidInput" {
		t.Errorf("enable DHCP of a link-local subnet: got %s, want 400 InvalidInput", got)
	}
	c.must(200, "PUT", path, `{"subnet":{"enable_dhcp":false}}`)
}

// The kernel of a host refuses a route whose destination has host bits, and no route leads to a loopback
// address.
func TestSubnet_HostRoutesLeadToNetworks(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, four := c.createNetwork("10.0.0.0/24")
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64"}}`, net))["subnet"].(object)["id"].(string)
	for destination, want := range map[string]string{
		"10.9.0.5/24":         "400 HTTPBadRequest: Invalid input for host_routes. Reason: '10.9.0.5/24' isn't a recognized IP subnet cidr, '10.9.0.0/24' is recommended.",
		"10.9.0.5/0":          "400 HTTPBadRequest: Invalid input for host_routes. Reason: '10.9.0.5/0' isn't a recognized IP subnet cidr, '0.0.0.0/0' is recommended.",
		"2001:db8::5/64":      "400 HTTPBadRequest: Invalid input for host_routes. Reason: '2001:db8::5/64' isn't a recognized IP subnet cidr, '2001:db8::/64' is recommended.",
		"127.0.0.0/8":         "400 HTTPBadRequest: Invalid input for host_routes. Reason: '127.0.0.0/8' is a loopback subnet, to which no route leads.",
		"127.1.2.3/32":        "400 HTTPBadRequest: Invalid input for host_routes. Reason: '127.1.2.3/32' is a loopback subnet, to which no route leads.",
		"::1/128":             "400 HTTPBadRequest: Invalid input for host_routes. Reason: '::1/128' is a loopback subnet, to which no route leads.",
		"::ffff:10.9.0.0/120": "400 HTTPBadRequest: Invalid input for host_routes. Reason: '::ffff:10.9.0.0/120' is not a valid IP subnet.",
		"10.9.0.0/24":         "",
		"10.9.0.5/32":         "",
		"0.0.0.0/0":           "",
		"0.0.0.0/1":           "",
		"2001:db8::/64":       "",
		"2001:db8::5/128":     "",
		"::/0":                "",
	} {
		t.Run(destination, func(t *testing.T) {
			c := c.in(t)
			subnet, hop, version, cidr := four, "10.0.0.9", 4, "10.7.0.0/24"
			if strings.Contains(destination, ":") {
				subnet, hop, version, cidr = six, "fd00::9", 6, "fd07::/64"
			}
			routes := fmt.Sprintf(`"host_routes":[{"destination":%q,"nexthop":%q}]`, destination, hop)
			create := fmt.Sprintf(
				`{"network_id":%q,"ip_version":%d,"cidr":%q,%s}`,
				c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"],
				version, cidr, routes,
			)
			for _, r := range []struct {
				method, path, body string
				ok                 int
			}{
				{"PUT", "/v2.0/subnets/" + subnet, `{"subnet":{` + routes + `}}`, 200},
				{"POST", "/v2.0/subnets", `{"subnets":[` + create + `]}`, 201},
			} {
				if want == "" {
					c.must(r.ok, r.method, r.path, r.body)
				} else if got := c.faultMessage(r.method, r.path, r.body); got != want {
					t.Errorf("%s %s: want %s, got %s", r.method, r.body, want, got)
				}
			}
		})
	}
}
