package neutron

import (
	"encoding/json"
	"strings"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network/attribute"
)

// FuzzAttributes decodes one object of each resource from arbitrary JSON. An object is either accepted, or
// refused with an error of the Networking API that names no Go type.
func FuzzAttributes(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","network_id":"5a000000-0000-4000-8000-000000000001","fixed_ips":[{"ip_address":"10.0.0.1"}],"tags":["a"]}`,
		`{"mac_address":"fa:16:3e:00:00:01","allowed_address_pairs":[{"ip_address":"10.0.0.0/8"}],"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":null}]}`,
		`{"network_id":"5a000000-0000-4000-8000-000000000001","ip_version":6,"cidr":"fd00::/64","allocation_pools":[{"start":"fd00::1","end":"fd00::2"}]}`,
		`{"cidr":"10.0.0.0/33","gateway_ip":null,"host_routes":[{"destination":"::/0","nexthop":"x"}],"dns_nameservers":[1]}`,
		`{"provider:network_type":"vlan","provider:segmentation_id":4095,"provider:physical_network":"p","mtu":-1}`,
		`{"direction":"ingress","protocol":300,"port_range_min":-1,"port_range_max":1e9,"remote_ip_prefix":"0.0.0.0/0","ethertype":"ipv4"}`,
		`{"port_id":"5a000000-0000-4000-8000-000000000001","sub_ports":[{"segmentation_id":1.5}]}`,
		`{"binding:profile":{"a":[1]},"binding:host_id":"\u0000","project_id":null}`, `[]`, `null`, `{"a":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if osapi.CheckJSON(raw) != nil {
			return // every handler refuses this text before it decodes the text
		}
		for _, verb := range []attribute.Operations{attribute.OnCreate, attribute.OnUpdate} {
			decodeAny(t, networks(noStore), raw, verb)
			decodeAny(t, subnets(noStore), raw, verb)
			decodeAny(t, ports(noStore), raw, verb)
			decodeAny(t, trunks(noStore), raw, verb)
			decodeAny(t, securityGroups(noStore), raw, verb)
			decodeAny(t, securityRules(noStore), raw, verb)
			decodeAny(t, bindingResource, raw, verb)
		}
	})
}

func decodeAny[N, C any](t *testing.T, res resource[N, C], raw json.RawMessage, verb attribute.Operations) {
	t.Helper()
	for _, roles := range [][]string{{"admin"}, {"member"}} {
		_, err := res.decodeObject(raw, verb, identity.Caller{User: "u", Project: "p", Roles: roles})
		if err != nil &&
			(len(err.Error()) > 4096 || strings.Contains(err.Error(), "json: ") || strings.Contains(err.Error(), "Go value")) {
			t.Errorf("%s %s from %q: got the error %.300q, want one in the words of the API",
				verb, res.singular, raw, err)
		}
	}
}
