package neutron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/neutron"
	"berth/internal/identity"
	"berth/internal/store/portstore"
)

func TestPolicy_EachRouteHasARule(t *testing.T) {
	t.Parallel()
	guarded := map[string]int{}
	for _, rule := range neutron.Policy {
		for _, g := range rule.Guards {
			guarded[g]++
		}
	}
	for _, r := range neutron.New(&portstore.Store{}, identity.Noauth{}).Routes {
		route := r.Method + " " + strings.TrimSuffix(r.Path, ".json")
		if !r.Open && guarded[route] != 1 {
			t.Errorf("%s: got %d policy rules, want one", route, guarded[route])
		}
	}
}

// names lists the names of the objects that the caller gets, page by page if the size of the pages is not 0,
// and backwards if reverse is set.
func (c cloud) names(collection, roles string, size int, reverse bool) (names []string) {
	c.t.Helper()
	marker := ""
	for range 50 {
		path := "/v2.0/" + collection + "?sort_key=name&sort_dir=asc&"
		if size > 0 {
			path += fmt.Sprintf("limit=%d%s", size, marker)
		}
		if reverse {
			path += "&page_reverse=true"
		}
		all := c.must(200, "GET", path, "", "X-Roles", roles)[collection].([]any)
		var page []string
		for _, o := range all {
			page = append(page, o.(object)["name"].(string))
		}
		if reverse {
			names = append(page, names...)
		} else {
			names = append(names, page...)
		}
		if size == 0 || len(all) < size {
			break
		}
		last := all[len(all)-1]
		if reverse {
			last = all[0]
		}
		marker = "&marker=" + last.(object)["id"].(string)
	}
	return names
}

func TestPolicy_ListHasTheObjectsThatTheRuleAllows(t *testing.T) {
	t.Parallel()
	c := open(t)
	for i, n := range []struct{ project, shared string }{{"demo", "false"}, {"other", "true"}, {"demo", "false"}, {"other", "false"}, {"third", "false"}} {
		name := fmt.Sprintf("%d-%s", i, n.project)
		id := c.must(201, "POST", "/v2.0/networks", fmt.Sprintf(`{"network":{"name":%q,"project_id":%q,"shared":%s}}`, name, n.project, n.shared))["network"].(object)["id"]
		c.must(
			201, "POST", "/v2.0/ports",
			fmt.Sprintf(`{"port":{"name":"%s-own","network_id":%q,"project_id":%q}}`, name, id, n.project),
		)
		c.must(201, "POST", "/v2.0/ports", fmt.Sprintf(
			`{"port":{"name":"%s-dhcp","network_id":%q,"project_id":"","device_owner":"network:dhcp"}}`,
			name,
			id,
		))
	}
	all := []string{"0-demo", "1-other", "2-demo", "3-other", "4-third"}
	for _, tc := range []struct {
		collection, rule, token, roles string
		want                           []string
	}{
		{"networks", "", "ann:demo", "member", []string{"0-demo", "1-other", "2-demo"}},
		{"networks", "", "nova:service", "service", all},
		{"networks", "role:auditor or rule:project_reader", "ann:demo", "auditor", all},
		{"networks", "role:auditor or rule:project_reader", "ann:demo", "reader", []string{"0-demo", "2-demo"}},
		{"networks", "rule:owner", "eve:other", "member", []string{"1-other", "3-other"}},
		{"networks", "not rule:owner", "ann:demo", "member", []string{"1-other", "3-other", "4-third"}},
		{"networks", "!", "ann:demo", "member", nil},
		{"ports", "", "ann:demo", "member", []string{"0-demo-dhcp", "0-demo-own", "2-demo-dhcp", "2-demo-own"}},
		{"ports", "rule:owner", "ann:demo", "member", []string{"0-demo-own", "2-demo-own"}},
		{"ports", "rule:network_owner and not rule:network_device", "eve:other", "member", []string{"1-other-own", "3-other-own"}},
		{"ports", "rule:shared", "ann:demo", "member", []string{"1-other-dhcp", "1-other-own"}},
		{"ports", "rule:network_device", "ann:demo", "auditor", []string{"0-demo-dhcp", "1-other-dhcp", "2-demo-dhcp", "3-other-dhcp", "4-third-dhcp"}},
	} {
		t.Run(tc.collection+" "+tc.rule+" "+tc.token+" "+tc.roles, func(t *testing.T) {
			file := ""
			if tc.rule != "" {
				file = fmt.Sprintf("%q: %q", "get_"+strings.TrimSuffix(tc.collection, "s"), tc.rule)
			}
			v := c.withPolicy(t, file).as(tc.token)
			for _, size := range []int{0, 1, 2} {
				for _, reverse := range []bool{false, true} {
					if d := cmp.Diff(tc.want, v.names(tc.collection, tc.roles, size, reverse)); d != "" {
						t.Errorf("list the %s with pages of %d, reverse %v: (-want +got)\n%s",
							tc.collection, size, reverse, d)
					}
				}
			}
			for _, o := range c.must(200, "GET", "/v2.0/"+tc.collection, "")[tc.collection].([]any) {
				name, id := o.(object)["name"].(string), o.(object)["id"].(string)
				want := 404
				if slices.Contains(tc.want, name) {
					want = 200
				}
				v.must(want, "GET", "/v2.0/"+tc.collection+"/"+id, "", "X-Roles", tc.roles)
			}
		})
	}
}

func TestPolicy_RoleOfAnotherProjectDoesNotChooseTheOwner(t *testing.T) {
	t.Parallel()
	c := open(t).withPolicy(t, `"create_network": "role:creator"`).as("ann:demo")
	c.must(201, "POST", "/v2.0/networks", `{"network":{}}`, "X-Roles", "creator")
	c.must(400, "POST", "/v2.0/networks", `{"network":{"project_id":"other"}}`, "X-Roles", "creator,member")
	c.must(403, "POST", "/v2.0/networks", `{"network":{}}`, "X-Roles", "member")
}

func TestPolicy_AttributeRuleComparesTheObject(t *testing.T) {
	t.Parallel()
	c := open(t)
	body := func(project string) string { return fmt.Sprintf(`{"network":{"project_id":%q}}`, project) }
	id := func(o object) string { return o["network"].(object)["id"].(string) }
	demo := id(c.must(201, "POST", "/v2.0/networks", body("demo")))
	other := id(c.must(201, "POST", "/v2.0/networks", body("other")))
	v := c.withPolicy(t, `
"get_network": "@"
"update_network": "@"
"update_network:shared": "rule:owner"
"create_network:shared": "not project_id:%(project_id)s"
"get_network:provider:network_type": "rule:owner"
`).as("ann:demo")
	v.must(200, "PUT", "/v2.0/networks/"+other, `{"network":{"name":"x"}}`)
	v.must(403, "PUT", "/v2.0/networks/"+other, `{"network":{"shared":true}}`)
	v.must(200, "PUT", "/v2.0/networks/"+demo, `{"network":{"shared":true}}`)
	v.must(403, "POST", "/v2.0/networks", `{"networks":[{"name":"a"},{"shared":true}]}`)
	v.must(201, "POST", "/v2.0/networks", `{"networks":[{"name":"a"},{"shared":false}]}`)
	for id, want := range map[string]bool{demo: true, other: false} {
		if _, has := v.must(200, "GET", "/v2.0/networks/"+id, "")["network"].(object)["provider:network_type"]; has != want {
			t.Errorf("show provider:network_type of the network %s: got %v, want %v", id, has, want)
		}
	}
	v.must(400, "GET", "/v2.0/networks?provider:network_type=vxlan", "")
}

func TestPolicy_ServiceWritesPortsOfEveryProjectOnly(t *testing.T) {
	t.Parallel()
	c := open(t)
	objects := policyObjects(c, 1)
	nova := func(want int, method, path, body string) {
		t.Helper()
		c.as("nova:service").
			must(want, method, objects.Replace(path), objects.Replace(body), "X-Roles", "service")
	}
	nova(
		201, "POST", "/v2.0/ports",
		`{"port":{"network_id":"{network}","project_id":"demo","binding:host_id":"cmp-1","mac_address":"fa:16:3e:00:00:88"}}`,
	)
	nova(200, "PUT", "/v2.0/ports/{lone}",
		`{"port":{"binding:host_id":"cmp-1","binding:profile":{"a":"b"},"device_owner":"network:x"}}`)
	nova(200, "GET", "/v2.0/ports/{lone}/bindings/cmp-1", "")
	nova(204, "DELETE", "/v2.0/ports/{lone}", "")
	for _, kind := range []string{"network", "subnet", "trunk", "security-group"} {
		key := strings.ReplaceAll(kind, "-", "_")
		nova(200, "GET", "/v2.0/"+kind+"s/{"+kind+"s}", "")
		nova(403, "PUT", "/v2.0/"+kind+"s/{"+kind+"s}", `{"`+key+`":{"description":"x"}}`)
		nova(403, "DELETE", "/v2.0/"+kind+"s/{"+kind+"s}", "")
		nova(403, "POST", "/v2.0/"+kind+"s", `{"`+key+`":{}}`)
	}
	nova(200, "GET", "/v2.0/agents/{agents}", "")
	nova(403, "PUT", "/v2.0/agents/{agents}", `{"agent":{"description":"x"}}`)
	nova(403, "POST", "/v2.0/agents/{agents}/dhcp-networks", `{"network_id":"{network}"}`)
	nova(200, "GET", "/v2.0/quotas/demo", "")
	nova(403, "PUT", "/v2.0/quotas/demo", `{"quota":{"port":7}}`)
}
