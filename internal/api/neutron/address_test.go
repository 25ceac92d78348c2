package neutron_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// addresses are the port's IP addresses in their order.
func addresses(p object) []string {
	list := []string{}
	for _, f := range p["fixed_ips"].([]any) {
		list = append(list, f.(object)["ip_address"].(string))
	}
	return list
}

func TestPort_GetsOneIPv4AndEverySLAACAddress(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, v4 := c.createNetwork("10.0.0.0/30") // one address besides the gateway
	subnet := func(more string) object {
		return c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,%s}}`, net, more))["subnet"].(object)
	}
	subnet(`"cidr":"fd00:1::/64","allocation_pools":[{"start":"fd00:1::7","end":"fd00:1::7"}],"enable_dhcp":false`)
	slaac := subnet(`"cidr":"2001:db8::1/64","ipv6_address_mode":"slaac","ipv6_ra_mode":"slaac"`)
	if slaac["cidr"] != "2001:db8::/64" || slaac["gateway_ip"] != "2001:db8::" {
		t.Errorf("slaac subnet %v", slaac)
	}

	p := c.port(net, `,"mac_address":"fa:16:3e:11:22:33"`)
	if d := cmp.Diff([]string{"10.0.0.2", "fd00:1::7", "2001:db8::f816:3eff:fe11:2233"}, addresses(p)); d != "" {
		t.Error(d)
	}
	path := "/v2.0/ports/" + p["id"].(string)
	p = c.must(200, "PUT", path, `{"port":{"mac_address":"fa:16:3e:11:22:44"}}`)["port"].(object)
	if d := cmp.Diff([]string{"10.0.0.2", "fd00:1::7", "2001:db8::f816:3eff:fe11:2244"}, addresses(p)); d != "" {
		t.Errorf("after another MAC: %s", d)
	}
	p = c.must(200, "PUT", path, `{"port":{"fixed_ips":[]}}`)["port"].(object)
	if d := cmp.Diff([]string{"2001:db8::f816:3eff:fe11:2244"}, addresses(p)); d != "" {
		t.Errorf("without fixed addresses: %s", d)
	}
	p = c.must(200, "PUT", path, fmt.Sprintf(`{"port":{"fixed_ips":[{"subnet_id":%q}]}}`, v4))["port"].(object)
	if d := cmp.Diff([]string{"10.0.0.2", "2001:db8::f816:3eff:fe11:2244"}, addresses(p)); d != "" {
		t.Errorf("with one again: %s", d)
	}
	if got := c.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"fixed_ips":[{"subnet_id":%q}]}}`, net, v4)); got != "409 IpAddressGenerationFailure" {
		t.Errorf("a full subnet: %s", got)
	}
}

func TestSLAAC_AddressesCannotBeChosen(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, v4 := c.createNetwork("10.0.0.0/24")
	other, elsewhere := c.createNetwork("10.1.0.0/24")
	p := c.port(net, `,"mac_address":"fa:16:3e:11:22:33","binding:host_id":"cmp-1","device_owner":"compute:nova"`)
	router := c.port(net, `,"mac_address":"fa:16:3e:11:22:44","device_owner":"network:router_interface"`)["id"].(string)
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64","ipv6_ra_mode":"slaac"}}`, net))["subnet"].(object)["id"].(string)
	const created = "fd00::f816:3eff:fe11:2233"
	path := "/v2.0/ports/" + p["id"].(string)

	// A new SLAAC subnet gives an address to the existing ports. No agent has to report for it.
	after := c.must(200, "GET", path, "")["port"].(object)
	if d := cmp.Diff(append(addresses(p), created), addresses(after)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(p["berth:why"], after["berth:why"]); d != "" || after["revision_number"] != p["revision_number"].(float64)+1 {
		t.Errorf("revision %v, and what it waits for: %s", after["revision_number"], d)
	}
	if n := len(addresses(c.must(200, "GET", "/v2.0/ports/"+router, "")["port"].(object))); n != 1 {
		t.Errorf("a router has %d addresses", n)
	}

	const unknownID = "00000000-0000-4000-8000-000000000000"
	for fixed, want := range map[string]string{
		`{"subnet_id":"` + six + `","ip_address":"fd00::9"}`: "400 AllocationOnAutoAddressSubnet",
		`{"ip_address":"fd00::9"}`:                           "400 AllocationOnAutoAddressSubnet",
		`{"subnet_id":"` + elsewhere + `"}`:                  "400 InvalidInput",
		`{"subnet_id":"` + unknownID + `"}`:                  "404 SubnetNotFound",
	} {
		t.Run(fixed, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"fixed_ips":[%s]}}`, net, fixed)); got != want {
				t.Errorf("a new port with %s: want %s, got %s", fixed, want, got)
			}
			if got := c.fault("PUT", path, fmt.Sprintf(`{"port":{"fixed_ips":[%s]}}`, fixed)); got != want {
				t.Errorf("a port with %s: want %s, got %s", fixed, want, got)
			}
		})
	}
	// A client may send back the addresses that it read, with one more, and it may send the SLAAC address that it computed itself.
	same := fmt.Sprintf(`{"port":{"fixed_ips":[{"subnet_id":%q},{"subnet_id":%q,"ip_address":%q},{"subnet_id":%q}]}}`, v4, six, created, v4)
	if got := addresses(c.must(200, "PUT", path, same)["port"].(object)); len(got) != 3 || got[1] != created {
		t.Errorf("sent back: %v", got)
	}
	given := c.port(net, `,"mac_address":"fa:16:3e:11:22:55","fixed_ips":[{"ip_address":"fd00::f816:3eff:fe11:2255"}]`)
	if d := cmp.Diff([]string{"fd00::f816:3eff:fe11:2255"}, addresses(given)); d != "" {
		t.Error(d)
	}
	if got := addresses(c.must(200, "PUT", "/v2.0/ports/"+router, `{"port":{"fixed_ips":[{"ip_address":"fd00::1"}]}}`)["port"].(object)); got[0] != "fd00::1" || len(got) != 1 {
		t.Errorf("a router is given %v", got)
	}
	c.must(204, "DELETE", "/v2.0/networks/"+other, "")
}

func TestSubnet_IPv6ModesMustAgree(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64"}}`, net))["subnet"].(object)
	want := object{"start": "fd00::1", "end": "fd00::ffff:ffff:ffff:ffff"}
	if d := cmp.Diff(want, six["allocation_pools"].([]any)[0]); d != "" || six["gateway_ip"] != "fd00::" {
		t.Errorf("gateway %v, pool %s", six["gateway_ip"], d)
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
				t.Errorf("%s: want %s, got %s", more, want, got)
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
	c.must(200, "PUT", path, `{"subnet":{"allocation_pools":[{"start":"10.0.0.20","end":"10.0.0.30"}],"gateway_ip":"10.0.0.1"}}`)

	if got := c.fault("PUT", path, `{"subnet":{"gateway_ip":"10.0.0.9"}}`); got != "409 GatewayIpInUse" {
		t.Errorf("another gateway: %s", got)
	}
	c.must(204, "DELETE", router, "")
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":"10.0.0.9"}}`)
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":"10.0.0.10"}}`) // what has the address is no router
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":null}}`)
	c.must(200, "PUT", path, `{"subnet":{"gateway_ip":"10.0.0.1"}}`)
}
