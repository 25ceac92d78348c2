package neutron_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// addresses returns the port's IP addresses in their order.
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
	subnet(
		`"cidr":"fd00:1::/64","allocation_pools":[{"start":"fd00:1::7","end":"fd00:1::7"}],"enable_dhcp":false`,
	)
	slaac := subnet(`"cidr":"2001:db8::1/64","ipv6_address_mode":"slaac","ipv6_ra_mode":"slaac"`)
	if slaac["cidr"] != "2001:db8::/64" || slaac["gateway_ip"] != "2001:db8::" {
		t.Errorf("created SLAAC subnet: got %v, want CIDR 2001:db8::/64 and gateway 2001:db8::", slaac)
	}

	p := c.port(net, `,"mac_address":"fa:16:3e:11:22:33"`)
	if d := cmp.Diff([]string{"10.0.0.2", "fd00:1::7", "2001:db8::f816:3eff:fe11:2233"}, addresses(p)); d != "" {
		t.Error(d)
	}
	path := "/v2.0/ports/" + p["id"].(string)
	p = c.must(200, "PUT", path, `{"port":{"mac_address":"fa:16:3e:11:22:44"}}`)["port"].(object)
	if d := cmp.Diff([]string{"10.0.0.2", "fd00:1::7", "2001:db8::f816:3eff:fe11:2244"}, addresses(p)); d != "" {
		t.Errorf("addresses after the MAC changed (-want +got):\n%s", d)
	}
	p = c.must(200, "PUT", path, `{"port":{"fixed_ips":[]}}`)["port"].(object)
	if d := cmp.Diff([]string{"2001:db8::f816:3eff:fe11:2244"}, addresses(p)); d != "" {
		t.Errorf("addresses after fixed_ips were set to [] (-want +got):\n%s", d)
	}
	p = c.must(200, "PUT", path, fmt.Sprintf(`{"port":{"fixed_ips":[{"subnet_id":%q}]}}`, v4))["port"].(object)
	if d := cmp.Diff([]string{"10.0.0.2", "2001:db8::f816:3eff:fe11:2244"}, addresses(p)); d != "" {
		t.Errorf("addresses after an IPv4 address was requested again (-want +got):\n%s", d)
	}
	if got := c.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"fixed_ips":[{"subnet_id":%q}]}}`, net, v4)); got != "409 IpAddressGenerationFailure" {
		t.Errorf(
			"create a port on a subnet without free addresses: got %s, want 409 IpAddressGenerationFailure",
			got,
		)
	}
}

func TestSLAAC_AddressesCannotBeChosen(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, v4 := c.createNetwork("10.0.0.0/24")
	other, elsewhere := c.createNetwork("10.1.0.0/24")
	p := c.port(net,
		`,"mac_address":"fa:16:3e:11:22:33","binding:host_id":"cmp-1","device_owner":"compute:nova"`)
	router := c.port(net, `,"mac_address":"fa:16:3e:11:22:44","device_owner":"network:router_interface"`)["id"].(string)
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64","ipv6_ra_mode":"slaac"}}`, net))["subnet"].(object)["id"].(string)
	const created = "fd00::f816:3eff:fe11:2233"
	path := "/v2.0/ports/" + p["id"].(string)

	// When a client adds a SLAAC subnet to a network, the existing ports on the network get an address in the
	// new subnet. A port does not wait for an agent's report about a new SLAAC address.
	after := c.must(200, "GET", path, "")["port"].(object)
	if d := cmp.Diff(append(addresses(p), created), addresses(after)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(p["berth:why"], after["berth:why"]); d != "" ||
		after["revision_number"] != p["revision_number"].(float64)+1 {
		t.Errorf(
			"the port after a SLAAC subnet was added: got revision %v, want the next one; berth:why (-want +got):\n%s",
			after["revision_number"],
			d,
		)
	}
	if n := len(addresses(c.must(200, "GET", "/v2.0/ports/"+router, "")["port"].(object))); n != 1 {
		t.Errorf("addresses of a router port after a SLAAC subnet was added: got %d, want 1", n)
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
				t.Errorf("create a port with the fixed IP %s: want %s, got %s", fixed, want, got)
			}
			if got := c.fault("PUT", path, fmt.Sprintf(`{"port":{"fixed_ips":[%s]}}`, fixed)); got != want {
				t.Errorf("update a port to the fixed IP %s: want %s, got %s", fixed, want, got)
			}
		})
	}
	// A client may send the addresses that it has read from a port together with a new address. A client may
	// also send the SLAAC address of a new port if the client has computed the address from the port's MAC
	// address.
	same := fmt.Sprintf(
		`{"port":{"fixed_ips":[{"subnet_id":%q},{"subnet_id":%q,"ip_address":%q},{"subnet_id":%q}]}}`,
		v4, six, created, v4,
	)
	if got := addresses(c.must(200, "PUT", path, same)["port"].(object)); len(got) != 3 || got[1] != created {
		t.Errorf(
			"addresses after the client sent back what it had read and one more: got %v, want 3 with the same SLAAC address",
			got,
		)
	}
	given := c.port(net,
		`,"mac_address":"fa:16:3e:11:22:55","fixed_ips":[{"ip_address":"fd00::f816:3eff:fe11:2255"}]`)
	if d := cmp.Diff([]string{"fd00::f816:3eff:fe11:2255"}, addresses(given)); d != "" {
		t.Error(d)
	}
	if got := addresses(c.must(200, "PUT", "/v2.0/ports/"+router, `{"port":{"fixed_ips":[{"ip_address":"fd00::1"}]}}`)["port"].(object)); got[0] != "fd00::1" ||
		len(got) != 1 {
		t.Errorf("addresses of a router port after setting fd00::1: got %v, want only fd00::1", got)
	}
	c.must(204, "DELETE", "/v2.0/networks/"+other, "")
}

func TestPort_ShowsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/29")

	p := c.port(
		net,
		`,"name":"web","binding:host_id":"cmp-1","device_owner":"compute:nova","mac_address":"FA:16:3E:00:00:01"`,
	)

	id := p["id"].(string)
	shown := c.must(200, "GET", "/v2.0/ports/"+id, "")["port"].(object)
	if d := cmp.Diff(p, shown); d != "" {
		t.Errorf(
			"GET of a new port: want the same port as in the response to the POST that created it (-POST +GET):\n%s",
			d,
		)
	}
	why := shown["berth:why"].(object)
	if n := len(why["waiting"].([]any)); n != 2 ||
		!strings.Contains(why["sentence"].(string), "L2 on cmp-1") ||
		!strings.Contains(why["sentence"].(string), "DHCP on net-1") {
		t.Errorf("berth:why of the new port: got %v, want L2 on cmp-1 and DHCP on net-1", why)
	}
	if groups := shown["security_groups"].([]any); len(groups) != 1 {
		t.Errorf("security groups of the new port: got %v, want the default group alone", groups)
	}
	for _, moving := range []string{"id", "created_at", "updated_at", "berth:why", "fixed_ips", "security_groups"} {
		t.Run(moving, func(t *testing.T) {
			delete(shown, moving)
		})
	}
	want := object{
		"network_id":            net,
		"name":                  "web",
		"description":           "",
		"project_id":            "admin",
		"tenant_id":             "admin",
		"admin_state_up":        true,
		"mac_address":           "fa:16:3e:00:00:01",
		"device_id":             "",
		"device_owner":          "compute:nova",
		"status":                "DOWN",
		"port_security_enabled": true,
		"allowed_address_pairs": []any{},
		"extra_dhcp_opts":       []any{},
		"binding:host_id":       "cmp-1",
		"binding:vnic_type":     "normal",
		"binding:vif_type":      "ovs",
		"binding:profile":       object{},
		"binding:vif_details": object{
			"connectivity":    "l2",
			"port_filter":     true,
			"ovs_hybrid_plug": false,
			"datapath_type":   "system",
			"bridge_name":     "br-int",
			"bound_drivers":   object{"0": "openvswitch"},
		},
		"tags":            []any{},
		"revision_number": 1.0,
	}
	if d := cmp.Diff(want, shown); d != "" {
		t.Error(d)
	}
	if fixed := p["fixed_ips"].([]any); len(fixed) != 1 || fixed[0].(object)["subnet_id"] != subnet {
		t.Errorf("fixed_ips of the new port: got %v, want one address of the subnet", fixed)
	}
}

func TestPort_AddressPairsAndDHCPOptionsRoundTrip(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(
		net,
		`,"mac_address":"fa:16:3e:00:00:01","allowed_address_pairs":[{"ip_address":"10.0.0.9"},{"ip_address":"10.1.0.0/16","mac_address":"FA:16:3E:00:00:02"}],`+
			`"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":"1400"},{"opt_name":"mtu","opt_value":"1300","ip_version":6},{"opt_name":"gone","opt_value":null}]`,
	)
	path := "/v2.0/ports/" + p["id"].(string)
	option := func(name, value string, version float64) object {
		return object{"opt_name": name, "opt_value": value, "ip_version": version}
	}
	check := func(p object, pairs, options []any) {
		t.Helper()
		if d := cmp.Diff([]any{pairs, options}, []any{p["allowed_address_pairs"], p["extra_dhcp_opts"]}); d != "" {
			t.Error(d)
		}
	}
	pairs := []any{
		object{"ip_address": "10.0.0.9", "mac_address": "fa:16:3e:00:00:01"},
		object{"ip_address": "10.1.0.0/16", "mac_address": "fa:16:3e:00:00:02"},
	}
	check(p, pairs, []any{option("mtu", "1400", 4), option("mtu", "1300", 6)})
	changed := c.must(200, "PUT", path, `{"port":{"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":null},{"opt_name":"tftp","opt_value":"x"}]}}`)["port"].(object)
	check(changed, pairs, []any{option("mtu", "1300", 6), option("tftp", "x", 4)})
	changed = c.must(200, "PUT", path, `{"port":{"allowed_address_pairs":null}}`)["port"].(object)
	check(changed, []any{}, []any{option("mtu", "1300", 6), option("tftp", "x", 4)})
	check(c.must(200, "GET", path, "")["port"].(object), []any{},
		[]any{option("mtu", "1300", 6), option("tftp", "x", 4)})

	many := strings.TrimSuffix(strings.Repeat(`{"ip_address":"10.0.0.%d"},`, 11), ",")
	numbers := make([]any, 11)
	for i := range numbers {
		numbers[i] = i
	}
	for body, want := range map[string]string{
		`"allowed_address_pairs":[{"ip_address":"10.0.0.9"},{"ip_address":"10.0.0.9/32"}]`:  "400 DuplicateAddressPairInRequest",
		`"allowed_address_pairs":[` + fmt.Sprintf(many, numbers...) + `]`:                   "400 AllowedAddressPairExhausted",
		`"allowed_address_pairs":[{"ip_address":"10.0.0.9"}],"port_security_enabled":false`: "409 AddressPairAndPortSecurityRequired",
		`"allowed_address_pairs":[{"ip_address":"x"}]`:                                      "400 HTTPBadRequest",
		`"allowed_address_pairs":[{"mac_address":"fa:16:3e:00:00:01"}]`:                     "400 AllowedAddressPairsMissingIP",
		`"extra_dhcp_opts":[{"opt_name":"","opt_value":"x"}]`:                               "400 HTTPBadRequest",
		`"extra_dhcp_opts":[{"opt_name":"a","opt_value":"x","ip_version":5}]`:               "400 HTTPBadRequest",
		`"extra_dhcp_opts":[{"opt_value":"x"}]`:                                             "400 HTTPBadRequest",
	} {
		t.Run(body, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("PUT", path, `{"port":{`+body+`}}`); got != want {
				t.Errorf("update a port with %.80s: want %s, got %s", body, want, got)
			}
		})
	}
}

func TestSharedNetwork_OnlyOwnerChoosesAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{"shared":true}}`)["network"].(object)["id"].(string)
	subnet := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":4,"cidr":"10.0.0.0/24"}}`, net))["subnet"].(object)["id"].(string)
	guest := c.as("u:theirs")
	p := guest.port(net, `,"name":"web"`)
	path, ip := "/v2.0/ports/"+p["id"].(string), p["fixed_ips"].([]any)[0].(object)["ip_address"].(string)
	pairs := c.must(200, "PUT", path, `{"port":{"allowed_address_pairs":[{"ip_address":"10.9.0.0/24"},{"ip_address":"10.8.0.1"}]}}`)["port"].(object)["allowed_address_pairs"]

	for _, said := range []string{`"mac_address":"fa:16:3e:00:00:01"`, `"fixed_ips":[{"ip_address":"10.0.0.1"}]`,
		`"fixed_ips":[{"subnet_id":"` + subnet + `","ip_address":"10.0.0.1"}]`, `"port_security_enabled":false,"security_groups":[]`,
		`"allowed_address_pairs":[{"ip_address":"10.0.0.1"}]`, `"device_owner":"network:dhcp"`} {
		t.Run(said, func(t *testing.T) {
			if got := guest.fault("POST", "/v2.0/ports", `{"port":{"network_id":"`+net+`",`+said+`}}`); got != "403 PolicyNotAuthorized" {
				t.Errorf(
					"another project creates a port with %s on a shared network: got %s, want 403 PolicyNotAuthorized",
					said,
					got,
				)
			}
			if got := guest.fault("PUT", path, `{"port":{`+said+`}}`); got != "403 PolicyNotAuthorized" {
				t.Errorf(
					"another project sets %s on its port on a shared network: got %s, want 403 PolicyNotAuthorized",
					said,
					got,
				)
			}
		})
	}
	guest.port(
		net,
		`,"fixed_ips":[{"subnet_id":"`+subnet+`"}],"port_security_enabled":true,"allowed_address_pairs":[]`,
	)
	guest.must(200, "PUT", path, fmt.Sprintf(
		`{"port":{"name":"www","fixed_ips":[{"subnet_id":%q,"ip_address":%q},{"subnet_id":%q}],"mac_address":%q}}`,
		subnet, ip, subnet, p["mac_address"],
	))
	first := pairs.([]any)[0].(object)
	guest.must(200, "PUT", path, fmt.Sprintf(
		`{"port":{"allowed_address_pairs":[{"ip_address":%q,"mac_address":%q}]}}`,
		first["ip_address"],
		first["mac_address"],
	))
}

func TestSharedNetwork_OwnerDeletesButDoesNotChangeOthersPorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner, guest := c.as("u:mine"), c.as("u:theirs")
	net, _ := owner.createNetwork("10.0.0.0/24")
	c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{"shared":true}}`)
	path := "/v2.0/ports/" + guest.port(net, "")["id"].(string)

	owner.must(200, "GET", path, "")
	if got := owner.fault("PUT", path, `{"port":{"name":"x"}}`); got != "403 PolicyNotAuthorized" {
		t.Errorf(
			"the owner of a shared network renames another project's port: got %s, want 403 PolicyNotAuthorized",
			got,
		)
	}
	if got := c.fault("PUT", "/v2.0/networks/"+net, `{"network":{"shared":false}}`); got != "409 InvalidSharedSetting" {
		t.Errorf(
			"stop sharing a network while it has another project's ports: got %s, want 409 InvalidSharedSetting",
			got,
		)
	}
	owner.must(204, "DELETE", path, "")
	c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{"shared":false}}`)
}

func TestPort_InheritsPortSecurityFromNetwork(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{"port_security_enabled":false}}`)["network"].(object)["id"].(string)
	if p := c.port(net, ""); p["port_security_enabled"] != false || len(p["security_groups"].([]any)) != 0 {
		t.Errorf(
			"a port on a network without port security: got port security %v and groups %v, want false and none",
			p["port_security_enabled"],
			p["security_groups"],
		)
	}
	if p := c.port(net, `,"port_security_enabled":true`); len(p["security_groups"].([]any)) != 1 {
		t.Errorf("groups of a port that enables port security: got %v, want the default group alone",
			p["security_groups"])
	}
}

func TestPort_SecurityGroupsAreExactlyTheRequestedOnes(t *testing.T) {
	t.Parallel()
	c := open(t).as("ann:demo")
	net, _ := c.createNetwork("10.0.0.0/24")
	web, foreign := c.group("web"), c.as("eve:other").group("theirs")
	p := c.port(net, "")
	path := "/v2.0/ports/" + p["id"].(string)

	changed := c.must(200, "PUT", path, `{"port":{"security_groups":["`+web+`"]}}`)["port"].(object)
	if d := cmp.Diff([]any{web}, changed["security_groups"]); d != "" || changed["revision_number"] != 2.0 {
		t.Errorf("the port after its groups changed: got revision %v, want 2; groups (-want +got):\n%s",
			changed["revision_number"], d)
	}
	const unknownID = "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"
	for got, want := range map[string]string{
		"unknown: " + c.fault("PUT", path, `{"port":{"security_groups":["`+unknownID+`"]}}`):                                                "404 SecurityGroupNotFound",
		"of others: " + c.fault("PUT", path, `{"port":{"security_groups":["`+foreign+`"]}}`):                                                "404 SecurityGroupNotFound",
		"new, of others: " + c.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"security_groups":[%q]}}`, net, foreign)): "404 SecurityGroupNotFound",
		"no ID: " + c.fault("PUT", path, `{"port":{"security_groups":["web"]}}`):                                                            "400 HTTPBadRequest",
		"no security: " + c.fault("PUT", path, `{"port":{"port_security_enabled":false}}`):                                                  "409 PortSecurityPortHasSecurityGroup",
		"groups without: " + c.fault("PUT", path, `{"port":{"port_security_enabled":false,"security_groups":["`+web+`"]}}`):                 "400 PortSecurityAndIPRequiredForSecurityGroups",
		"in use: " + c.fault("DELETE", "/v2.0/security-groups/"+web, ""):                                                                    "409 SecurityGroupInUse",
		"made stateless: " + c.fault("PUT", "/v2.0/security-groups/"+web, `{"security_group":{"stateful":false}}`):                          "409 SecurityGroupInUse",
	} {
		t.Run(got, func(t *testing.T) {
			if what, got, _ := strings.Cut(got, ": "); got != want {
				t.Errorf("request about the security groups of a port, %s: want %s, got %s", what, want, got)
			}
		})
	}
	c.must(200, "PUT", path, `{"port":{"port_security_enabled":false,"security_groups":null}}`)
	c.must(204, "DELETE", "/v2.0/security-groups/"+web, "")
}
