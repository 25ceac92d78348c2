package neutron_test

import (
	"fmt"
	"strings"
	"testing"
)

// No packet has a multicast address or a multicast MAC as its source, so an allowed address pair with one
// would only weaken the filter.
func TestPort_AddressPairsHaveNoMulticastAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	path := "/v2.0/ports/" + c.port(net, "")["id"].(string)
	for pair, want := range map[string]string{
		`"ip_address":"224.0.0.18"`:                                      "400 InvalidInput",
		`"ip_address":"239.255.255.250"`:                                 "400 InvalidInput",
		`"ip_address":"224.0.0.0/4"`:                                     "400 InvalidInput",
		`"ip_address":"239.1.2.0/24"`:                                    "400 InvalidInput",
		`"ip_address":"192.0.0.0/2"`:                                     "400 InvalidInput",
		`"ip_address":"128.0.0.0/1"`:                                     "400 InvalidInput",
		`"ip_address":"200.1.2.3/1"`:                                     "400 InvalidInput",
		`"ip_address":"ff02::12"`:                                        "400 InvalidInput",
		`"ip_address":"ff05::/16"`:                                       "400 InvalidInput",
		`"ip_address":"fe00::/7"`:                                        "400 InvalidInput",
		`"ip_address":"8000::/1"`:                                        "400 InvalidInput",
		`"ip_address":"10.0.0.9","mac_address":"01:00:5e:00:00:12"`:      "400 InvalidInput",
		`"ip_address":"10.0.0.9","mac_address":"33:33:00:00:00:12"`:      "400 InvalidInput",
		`"ip_address":"0.0.0.0/0"`:                                       "",
		`"ip_address":"::/0"`:                                            "",
		`"ip_address":"0.0.0.0/1"`:                                       "",
		`"ip_address":"223.255.255.255"`:                                 "",
		`"ip_address":"240.0.0.0/4"`:                                     "",
		`"ip_address":"fe00::/8","mac_address":"02:00:5e:00:00:12"`:      "",
		`"ip_address":"192.0.0.0/3","mac_address":"fa:16:3e:00:00:12"`:   "",
		`"ip_address":"fe80::1:2/128","mac_address":"fa:16:3e:00:00:12"`: "",
	} {
		t.Run(pair, func(t *testing.T) {
			c := c.in(t)
			pairs := `"allowed_address_pairs":[{"ip_address":"10.0.0.77"},{` + pair + `}]`
			created := fmt.Sprintf(`{"network_id":%q,%s}`, net, pairs)
			for _, r := range []struct {
				method, path, body string
				ok                 int
			}{
				{"POST", "/v2.0/ports", `{"port":` + created + `}`, 201},
				{"PUT", path, `{"port":{` + pairs + `}}`, 200},
				{"POST", "/v2.0/ports", fmt.Sprintf(`{"ports":[{"network_id":%q},%s]}`, net, created), 201},
			} {
				if want == "" {
					c.must(r.ok, r.method, r.path, r.body)
				} else if got := c.fault(r.method, r.path, r.body); got != want {
					t.Errorf("%s %s: want %s, got %s", r.method, r.body, want, got)
				}
			}
		})
	}
	multicast := fmt.Sprintf(
		`{"port":{"network_id":%q,"mac_address":"01:00:5e:00:00:12","allowed_address_pairs":[{"ip_address":"10.0.0.9"}]}}`,
		net,
	)
	if got := c.fault("POST", "/v2.0/ports", multicast); got != "400 InvalidInput" {
		t.Errorf(
			"create a port whose address pair inherits a multicast MAC: want 400 InvalidInput, got %s",
			got,
		)
	}
}

// The DHCP agent writes each option of a port, and the client ID before the port's address, into one line of
// a file for dnsmasq. dnsmasq separates the fields of a line by commas, so that a client ID with commas could
// name the MAC of another project's port, and `ignore`. dnsmasq reads at most 1,024 bytes of a line, and
// takes the rest as a line of its own, which could be an option for all ports of the network.
func TestPort_DHCPOptionsSayNothingAboutOtherPorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	path := "/v2.0/ports/" + c.port(net, "")["id"].(string)
	foreign := func(name, value string) string {
		return fmt.Sprintf(`"extra_dhcp_opts":[{"opt_name":%q,"opt_value":%q}]`, name, value)
	}
	wide := strings.Repeat("😀", 64)
	for options, want := range map[string]string{
		foreign("client-id", "01:02,fa:16:3e:00:00:99,ignore"): "400 HTTPBadRequest",
		foreign("61", "01:02,fa:16:3e:00:00:99,ignore"):        "400 HTTPBadRequest",
		foreign(wide, "x"): "400 HTTPBadRequest",
		foreign("tftp-server", strings.Repeat(wide, 3)+"option:dns-server,6.6.6.6"):               "400 HTTPBadRequest",
		foreign("client-id", "ff:00:00:00:00:00:02:00:00:02:c9:00:fa:16:3e:00:03:00:e3:b5:01:9a"): "",
		foreign("61", strings.Repeat("1", 255)):                                                   "",
		foreign("dns-server", "10.0.0.2,10.0.0.3"):                                                "",
		foreign("bootfile-name", "größe.0"):                                                       "",
	} {
		t.Run(options, func(t *testing.T) {
			c := c.in(t)
			for _, r := range []struct {
				method, path, body string
				ok                 int
			}{
				{"POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,%s}}`, net, options), 201},
				{"PUT", path, `{"port":{` + options + `}}`, 200},
			} {
				if want == "" {
					c.must(r.ok, r.method, r.path, r.body)
				} else if got := c.fault(r.method, r.path, r.body); got != want {
					t.Errorf("%s %s: want %s, got %s", r.method, r.body, want, got)
				}
			}
		})
	}
}

// An address pair without a MAC gets the MAC of the port. It is not the pair with the same address and
// another MAC that the owner of the network has allowed.
func TestSharedNetwork_AllowedPairWithoutItsMACIsAnotherPair(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{"shared":true}}`)["network"].(object)["id"].(string)
	guest := c.as("u:theirs")
	path := "/v2.0/ports/" + guest.port(net, "")["id"].(string)
	const other = `{"port":{"allowed_address_pairs":[{"ip_address":"10.0.0.1","mac_address":"00:00:5e:00:01:01"}]}}`
	c.must(200, "PUT", path, other)
	const own = `{"port":{"allowed_address_pairs":[{"ip_address":"10.0.0.1"}]}}`
	if got := guest.fault("PUT", path, own); got != "403 PolicyNotAuthorized" {
		t.Errorf(
			"another project gives an allowed address the MAC of its port: got %s, want 403 PolicyNotAuthorized",
			got,
		)
	}
	guest.must(200, "PUT", path, other)
	c.must(200, "PUT", path, own)
	guest.must(200, "PUT", path, own)
}

// dnsmasq gives the address and the options of a port to each device that sends the client ID of the port,
// before it compares MACs. Most devices send a client ID that contains their MAC.
func TestSharedNetwork_OnlyTheOwnerOfTheNetworkChoosesClientIDs(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{"shared":true}}`)["network"].(object)["id"].(string)
	guest := c.as("u:theirs")
	own, _ := guest.createNetwork("10.0.0.0/24")
	option := func(name, value string) string {
		return fmt.Sprintf(`"extra_dhcp_opts":[{"opt_name":%q,"opt_value":%s}]`, name, value)
	}
	const id, other = `"01:fa:16:3e:00:00:99"`, `"01:fa:16:3e:00:00:98"`
	for _, name := range []string{"client-id", "61"} {
		guest.port(own, ","+option(name, id))
		create := fmt.Sprintf(`{"port":{"network_id":%q,%s}}`, net, option(name, id))
		if got := guest.fault("POST", "/v2.0/ports", create); got != "403 PolicyNotAuthorized" {
			t.Errorf("another project creates a port with the option %s: got %s, want 403 PolicyNotAuthorized",
				name, got)
		}
		path := "/v2.0/ports/" + guest.port(net, ","+option("mtu", `"1400"`))["id"].(string)
		update := func(value string) string { return `{"port":{` + option(name, value) + `}}` }
		if got := guest.fault("PUT", path, update(id)); got != "403 PolicyNotAuthorized" {
			t.Errorf("another project gives a port the option %s: got %s, want 403 PolicyNotAuthorized",
				name, got)
		}
		c.must(200, "PUT", path, update(id))
		guest.must(200, "PUT", path, update(id))
		if got := guest.fault("PUT", path, update(other)); got != "403 PolicyNotAuthorized" {
			t.Errorf("another project changes the option %s: got %s, want 403 PolicyNotAuthorized", name, got)
		}
		guest.must(200, "PUT", path, update("null"))
	}
}
