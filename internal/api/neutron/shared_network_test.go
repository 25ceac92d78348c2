package neutron_test

import (
	"fmt"
	"testing"
)

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
				t.Errorf("a guest makes a port with %s: %s", said, got)
			}
			if got := guest.fault("PUT", path, `{"port":{`+said+`}}`); got != "403 PolicyNotAuthorized" {
				t.Errorf("a guest gives a port %s: %s", said, got)
			}
		})
	}
	guest.port(net, `,"fixed_ips":[{"subnet_id":"`+subnet+`"}],"port_security_enabled":true,"allowed_address_pairs":[]`)
	guest.must(200, "PUT", path, fmt.Sprintf(`{"port":{"name":"www","fixed_ips":[{"subnet_id":%q,"ip_address":%q},{"subnet_id":%q}],"mac_address":%q}}`,
		subnet, ip, subnet, p["mac_address"]))
	first := pairs.([]any)[0].(object)
	guest.must(200, "PUT", path, fmt.Sprintf(`{"port":{"allowed_address_pairs":[{"ip_address":%q,"mac_address":%q}]}}`, first["ip_address"], first["mac_address"]))
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
		t.Errorf("the owner of a network renames a guest's port: %s", got)
	}
	if got := c.fault("PUT", "/v2.0/networks/"+net, `{"network":{"shared":false}}`); got != "409 InvalidSharedSetting" {
		t.Errorf("a network is closed with guests inside: %s", got)
	}
	owner.must(204, "DELETE", path, "")
	c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{"shared":false}}`)
}

func TestExternalNetwork_VisibleToAllProjects(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner, guest := c.as("u:mine"), c.as("u:theirs")
	net, subnet := owner.createNetwork("10.0.0.0/24")
	path := "/v2.0/networks/" + net
	if got := guest.fault("GET", path, ""); got != "404 NetworkNotFound" {
		t.Errorf("a network of others: %s", got)
	}
	c.must(200, "PUT", path, `{"network":{"router:external":true}}`)

	if got := ids(guest.must(200, "GET", "/v2.0/networks?router:external=true", ""), "networks"); len(got) != 1 {
		t.Errorf("external networks: %v", got)
	}
	if got := guest.fault("GET", "/v2.0/subnets/"+subnet, ""); got != "404 SubnetNotFound" {
		t.Errorf("its subnet: %s", got)
	}
	if got := guest.fault("POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":4,"cidr":"10.1.0.0/24"}}`, net)); got != "403 PolicyNotAuthorized" {
		t.Errorf("a subnet there: %s", got)
	}
	port := guest.port(net, "")
	if got := c.fault("PUT", path, `{"network":{"router:external":false}}`); got != "409 InvalidSharedSetting" {
		t.Errorf("closed with guests inside: %s", got)
	}
	guest.must(204, "DELETE", "/v2.0/ports/"+port["id"].(string), "")
	c.must(200, "PUT", path, `{"network":{"router:external":false}}`)
}

func TestNetwork_DefaultsOfNetworksAndServicePorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	flat := c.must(201, "POST", "/v2.0/networks", `{"network":{"mtu":0,"provider:network_type":"flat","provider:physical_network":"p"}}`)["network"].(object)
	path := "/v2.0/networks/" + flat["id"].(string)
	changed := c.must(200, "PUT", path, `{"network":{"mtu":9000}}`)["network"].(object)
	back := c.must(200, "PUT", path, `{"network":{"mtu":0}}`)["network"].(object)
	if flat["mtu"] != 1500.0 || changed["mtu"] != 9000.0 || back["mtu"] != 1500.0 {
		t.Errorf("mtu %v, then %v, then %v", flat["mtu"], changed["mtu"], back["mtu"])
	}
	for _, tc := range []struct{ body, want string }{
		{`{"network":{"provider:network_type":"flat","provider:physical_network":"p"}}`, "409 FlatNetworkInUse"},
		{`{"network":{"provider:segmentation_id":77}}`, ""},
		{`{"network":{"provider:segmentation_id":77}}`, "409 TunnelIdInUse"},
		{`{"network":{"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":5}}`, ""},
		{`{"network":{"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":5}}`, "409 VlanIdInUse"},
	} {
		t.Run(tc.body, func(t *testing.T) {
			c := c.in(t)
			if tc.want == "" {
				c.must(201, "POST", "/v2.0/networks", tc.body)
			} else if got := c.fault("POST", "/v2.0/networks", tc.body); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.body, tc.want, got)
			}
		})
	}

	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(net, `,"device_owner":"network:distributed","security_groups":["`+c.group("g")+`"]`)
	if p["port_security_enabled"] != false || len(p["security_groups"].([]any)) != 0 {
		t.Errorf("a port of the network's own: %v, %v", p["port_security_enabled"], p["security_groups"])
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/subnets?subnetpool_id=x&sort_key=subnetpool_id&sort_dir=asc", ""), "subnets")); n != 0 {
		t.Errorf("%d subnets are from a pool", n)
	}
}

func TestPolicy_MemberMaySendUnchangedAdminValues(t *testing.T) {
	t.Parallel()
	c := open(t)
	ann := c.as("u:demo")
	net := ann.must(201, "POST", "/v2.0/networks", `{"network":{"shared":false,"router:external":"False"}}`)["network"].(object)["id"].(string)
	for method, said := range map[string]string{"POST": `"shared":true`, "PUT": `"shared":false`} {
		t.Run(method, func(t *testing.T) {
			path := map[string]string{"POST": "/v2.0/networks", "PUT": "/v2.0/networks/" + net}[method]
			if got := ann.fault(method, path, `{"network":{`+said+`}}`); got != "403 PolicyNotAuthorized" {
				t.Errorf("%s %s: %s", method, said, got)
			}
		})
	}

	// Both see the rule that an administrator adds to a member's group.
	group := ann.group("g")
	rule := c.must(201, "POST", "/v2.0/security-group-rules", fmt.Sprintf(`{"security_group_rule":{"security_group_id":%q,"direction":"ingress"}}`, group))["security_group_rule"].(object)["id"].(string)
	path := "/v2.0/security-group-rules/" + rule
	ann.must(200, "GET", path, "")
	if got := ann.fault("DELETE", path, ""); got != "403 PolicyNotAuthorized" {
		t.Errorf("a member deletes it: %s", got)
	}
	if got := c.as("u:other").fault("GET", path, ""); got != "404 SecurityGroupRuleNotFound" {
		t.Errorf("others see it: %s", got)
	}
}
