package neutron_test

import (
	"fmt"
	"strings"
	"testing"
)

const tooManyAddresses = "400 InvalidInput: " +
	"Invalid input for operation: Exceeded maximum amount of fixed ips per port."

// anyAddresses returns the attribute fixed_ips with n items that each request any address of the subnet.
func anyAddresses(subnet string, n int) string {
	items := strings.Repeat(fmt.Sprintf(`,{"subnet_id":%q}`, subnet), n)
	return `"fixed_ips":[` + strings.TrimPrefix(items, ",") + `]`
}

// openNetwork creates a network of the project "admin" with the attribute that opens it to all projects.
func (c cloud) openNetwork(attribute string) (net, subnet string) {
	c.t.Helper()
	net, subnet = c.createNetwork("10.0.0.0/24")
	c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{`+attribute+`}}`)
	return net, subnet
}

// Otherwise one project could take all addresses of a shared network within its quota of ports.
func TestFixedIPs_MemberGetsFewPerPortOnNetworksOfOtherProjects(t *testing.T) {
	t.Parallel()
	c := open(t)
	guest := c.as("u:theirs")
	for _, attribute := range []string{`"shared":true`, `"router:external":true`} {
		t.Run(attribute, func(t *testing.T) {
			c, guest := c.in(t), guest.in(t)
			net, subnet := c.openNetwork(attribute)
			port := func(n int) string { return fmt.Sprintf(`{"network_id":%q,%s}`, net, anyAddresses(subnet, n)) }
			path := "/v2.0/ports/" + guest.port(net, ","+anyAddresses(subnet, 5))["id"].(string)

			for what, got := range map[string]string{
				"creation": guest.faultMessage("POST", "/v2.0/ports", `{"port":`+port(6)+`}`),
				"bulk":     guest.faultMessage("POST", "/v2.0/ports", `{"ports":[`+port(1)+`,`+port(6)+`]}`),
				"update":   guest.faultMessage("PUT", path, `{"port":{`+anyAddresses(subnet, 6)+`}}`),
			} {
				if got != tooManyAddresses {
					t.Errorf("%s with 6 addresses on the network of another project: got %s, want %s",
						what, got, tooManyAddresses)
				}
			}
			guest.must(201, "POST", "/v2.0/ports", `{"ports":[`+port(5)+`,`+port(5)+`]}`)
		})
	}
}

func TestFixedIPs_OwnersAndServicesMayRequestMany(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner := c.as("u:mine")
	net, subnet := owner.createNetwork("10.0.0.0/24")
	c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{"shared":true}}`)
	body := fmt.Sprintf(`{"port":{"network_id":%q,%s}}`, net, anyAddresses(subnet, 6))
	for what, requester := range map[string]struct {
		cloud
		header []string
	}{
		"the owner of the network": {owner, nil},
		"an administrator":         {c, nil},
		"a service":                {c.as("nova:service"), []string{"X-Roles", "service"}},
	} {
		t.Run(what, func(t *testing.T) {
			r := requester.in(t)
			p := r.must(201, "POST", "/v2.0/ports", body, requester.header...)["port"].(object)
			grown := r.must(200, "PUT", "/v2.0/ports/"+p["id"].(string),
				`{"port":{`+anyAddresses(subnet, 7)+`}}`, requester.header...)["port"].(object)
			if n := len(addresses(grown)); n != 7 {
				t.Errorf("addresses of the port after the update: got %d, want 7", n)
			}
		})
	}
}

// An administrator, or an earlier version of berth, has given the port more addresses.
func TestFixedIPs_PortWithManyKeepsOrReleasesThem(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.openNetwork(`"shared":true`)
	c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(
		`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"2001:db8::/64","ipv6_ra_mode":"slaac"}}`, net))
	p := c.port(net, `,"project_id":"theirs",`+anyAddresses(subnet, 8))
	path, guest := "/v2.0/ports/"+p["id"].(string), c.as("u:theirs")
	update := func(fixed string) []string {
		t.Helper()
		return addresses(guest.must(200, "PUT", path, `{"port":{`+fixed+`}}`)["port"].(object))
	}

	guest.must(200, "PUT", path, `{"port":{"name":"web"}}`)
	if n := len(update(anyAddresses(subnet, 8))); n != 9 {
		t.Errorf("addresses after a request for all 8: got %d, want 8 and the SLAAC address", n)
	}
	more := `{"port":{` + anyAddresses(subnet, 9) + `}}`
	if got := guest.faultMessage("PUT", path, more); got != tooManyAddresses {
		t.Errorf("one more address for a port with 8: got %s, want %s", got, tooManyAddresses)
	}
	if n := len(update(anyAddresses(subnet, 7))); n != 8 {
		t.Errorf("addresses after the member has released one of 8: got %d, want 7 and the SLAAC address", n)
	}
	update(anyAddresses(subnet, 2))
	if n := len(update(anyAddresses(subnet, 5))); n != 6 {
		t.Errorf("addresses after the member has requested 5: got %d, want 5 and the SLAAC address", n)
	}
}
