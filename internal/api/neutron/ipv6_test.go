package neutron_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// addresses are a port's addresses in its order.
func addresses(p object) []string {
	list := []string{}
	for _, f := range p["fixed_ips"].([]any) {
		list = append(list, f.(object)["ip_address"].(string))
	}
	return list
}

func TestPortHasOneAddressOfEachKindAndThoseThatItsHostMakes(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, v4 := c.ground("10.0.0.0/30") // one address besides the gateway
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
