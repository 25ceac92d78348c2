package neutron_test

import (
	"fmt"
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
