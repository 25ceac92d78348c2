package neutron_test

import (
	"fmt"
	"testing"
)

func TestGuestsOfANetworkAreWhomTheyAreGivenToBe(t *testing.T) {
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
		if got := guest.fault("POST", "/v2.0/ports", `{"port":{"network_id":"`+net+`",`+said+`}}`); got != "403 PolicyNotAuthorized" {
			t.Errorf("a guest makes a port with %s: %s", said, got)
		}
		if got := guest.fault("PUT", path, `{"port":{`+said+`}}`); got != "403 PolicyNotAuthorized" {
			t.Errorf("a guest gives a port %s: %s", said, got)
		}
	}
	guest.port(net, `,"fixed_ips":[{"subnet_id":"`+subnet+`"}],"port_security_enabled":true,"allowed_address_pairs":[]`)
	guest.must(200, "PUT", path, fmt.Sprintf(`{"port":{"name":"www","fixed_ips":[{"subnet_id":%q,"ip_address":%q},{"subnet_id":%q}],"mac_address":%q}}`,
		subnet, ip, subnet, p["mac_address"]))
	first := pairs.([]any)[0].(object)
	guest.must(200, "PUT", path, fmt.Sprintf(`{"port":{"allowed_address_pairs":[{"ip_address":%q,"mac_address":%q}]}}`, first["ip_address"], first["mac_address"]))
}

func TestOwnerOfANetworkEvictsGuestsButDoesNotActForThem(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner, guest := c.as("u:mine"), c.as("u:theirs")
	net, _ := owner.ground("10.0.0.0/24")
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
