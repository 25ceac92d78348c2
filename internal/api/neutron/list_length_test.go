package neutron

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"berth/internal/identity"
	"berth/internal/network/attribute"
)

// TestAttributes_EachListHasALengthLimit sends a list of 10,000 items as the value of each attribute of each
// attribute table. The test needs no table of the lists: an attribute that is not a list refuses the value as
// a whole, so its error quotes the value.
func TestAttributes_EachListHasALengthLimit(t *testing.T) {
	t.Parallel()
	limited := slices.Concat(
		longListErrors(t, networks(noStore)),
		longListErrors(t, subnets(noStore)),
		longListErrors(t, ports(noStore)),
		longListErrors(t, trunks(noStore)),
		longListErrors(t, securityGroups(noStore)),
		longListErrors(t, securityRules(noStore)),
	)
	for _, name := range []string{"port.fixed_ips", "port.tags", "network.segments", "subnet.host_routes", "trunk.sub_ports"} {
		if !slices.Contains(limited, name) {
			t.Errorf("attributes with a length limit: got %v, want also %s", limited, name)
		}
	}
}

// longListErrors returns the attributes of a resource that refuse a list of 10,000 items because of its
// length.
func longListErrors[N, C any](t *testing.T, res resource[N, C]) (limited []string) {
	list := json.RawMessage("[" + strings.Repeat("{},", 9999) + "{}]")
	admin := identity.Caller{User: "u", Project: "p", Roles: []string{"admin"}}
	for _, a := range res.attributes {
		if a.Set == nil {
			continue
		}
		verb, given := attribute.OnUpdate, map[string]json.RawMessage{a.Name: list}
		if a.SettableOn&attribute.OnUpdate == 0 {
			verb = attribute.OnCreate
			maps.Copy(given, requiredBefore(res, a.Name))
		}
		body, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		_, err = res.decodeObject(body, verb, admin)
		switch {
		case err == nil:
			t.Errorf("%s.%s with a list of 10,000 items: got no error, want one", res.singular, a.Name)
		case strings.Contains(err.Error(), "Invalid input for "+a.Name) && strings.Contains(err.Error(), "the list has 10000 items, more than "):
			limited = append(limited, res.singular+"."+a.Name)
		case !strings.Contains(err.Error(), "[{}") && !strings.Contains(err.Error(), "only the empty value"):
			t.Errorf(
				"%s.%s with a list of 10,000 items: got the error %q, want an error about the length or about the whole list",
				res.singular, a.Name, err,
			)
		}
	}
	return limited
}

// requiredBefore returns valid values of the required attributes that stand in the attribute table before the
// named attribute.
func requiredBefore[N, C any](res resource[N, C], name string) map[string]json.RawMessage {
	values := map[string]json.RawMessage{"ip_version": []byte(`4`), "direction": []byte(`"ingress"`)}
	given := map[string]json.RawMessage{}
	for _, a := range res.attributes {
		if a.Name == name {
			break
		}
		if a.SettableOn&attribute.Required != 0 {
			if given[a.Name] = values[a.Name]; given[a.Name] == nil {
				given[a.Name] = []byte(`"5a000000-0000-4000-8000-000000000001"`)
			}
		}
	}
	return given
}
