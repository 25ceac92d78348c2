package neutron_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
)

// groupOf returns the ID of the project's group with the given name.
func (c cloud) groupOf(project, name string) string {
	c.t.Helper()
	found := ids(c.must(200, "GET", "/v2.0/security-groups?project_id="+project+"&name="+name, ""), "security_groups")
	if len(found) != 1 {
		c.t.Fatalf("security groups: got %d groups named %s of project %s, want 1", len(found), name, project)
	}
	return found[0]
}

func (c cloud) group(name string) string {
	c.t.Helper()
	return c.must(201, "POST", "/v2.0/security-groups", `{"security_group":{"name":"`+name+`"}}`)["security_group"].(object)["id"].(string)
}

// rulesOf counts the group's rules, by a short description of each rule.
func rulesOf(group object) map[string]int {
	short := map[string]int{}
	for _, v := range group["security_group_rules"].([]any) {
		r := v.(object)
		remote := "any"
		switch {
		case r["remote_group_id"] == group["id"]:
			remote = "its members"
		case r["remote_group_id"] != nil:
			remote = "others"
		case r["remote_ip_prefix"] != nil:
			remote = r["remote_ip_prefix"].(string)
		}
		short[fmt.Sprint(r["direction"], " ", r["ethertype"], " ", r["protocol"], " ", r["port_range_min"], "-", r["port_range_max"], " ", remote)]++
	}
	return short
}

func TestSecurityGroup_EveryProjectHasADefaultGroup(t *testing.T) {
	t.Parallel()
	c := open(t).as("ann:demo")
	net, _ := c.createNetwork("10.0.0.0/24")
	var requests sync.WaitGroup
	for range 4 { // the first request creates the group
		requests.Go(func() { c.must(200, "GET", "/v2.0/security-groups", "") })
		requests.Go(func() { c.must(201, "POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q}}`, net)) })
	}
	requests.Wait()

	group := c.groupOf("demo", "default")
	shown := c.must(200, "GET", "/v2.0/security-groups/"+group, "")["security_group"].(object)
	want := map[string]int{"egress IPv4 <nil> <nil>-<nil> any": 1, "egress IPv6 <nil> <nil>-<nil> any": 1,
		"ingress IPv4 <nil> <nil>-<nil> its members": 1, "ingress IPv6 <nil> <nil>-<nil> its members": 1}
	if d := cmp.Diff(want, rulesOf(shown)); d != "" {
		t.Error(d)
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/ports?security_groups="+group, ""), "ports")); n != 4 {
		t.Errorf("ports in the default group: got %d, want 4", n)
	}
	admin := c.as("admin")
	for name, tc := range map[string]struct {
		more string
		want []any
	}{
		"with an empty list of groups": {`,"security_groups":[]`, []any{}},
		"without port security":        {`,"port_security_enabled":false`, []any{}},
		"port of a network service":    {`,"device_owner":"network:dhcp"`, []any{}},
		"port for another project":     {`,"project_id":"demo"`, []any{group}},
		"with one group, named twice":  {`,"project_id":"demo","security_groups":["` + group + `","` + group + `"]`, []any{group}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, admin.port(net, tc.more)["security_groups"]); d != "" {
				t.Errorf("security groups of a new port, case %s (-want +got):\n%s", name, d)
			}
		})
	}
	for got, want := range map[string]string{
		c.fault("POST", "/v2.0/security-groups", `{"security_group":{"name":"default"}}`):                "409 SecurityGroupDefaultAlreadyExists",
		c.fault("PUT", "/v2.0/security-groups/"+group, `{"security_group":{"name":"x"}}`):                "409 SecurityGroupCannotUpdateDefault",
		c.fault("DELETE", "/v2.0/security-groups/"+group, ""):                                            "409 SecurityGroupCannotRemoveDefault",
		admin.fault("DELETE", "/v2.0/security-groups/"+group, ""):                                        "409 SecurityGroupInUse",
		c.as("eve:other").fault("GET", "/v2.0/security-groups/"+group, ""):                               "404 SecurityGroupNotFound",
		c.fault("PUT", "/v2.0/security-groups/"+group, `{"security_group":{"security_group_rules":[]}}`): "400 HTTPBadRequest",
	} {
		t.Run(got, func(t *testing.T) {
			if got != want {
				t.Errorf("request about a default security group: want %s, got %s", want, got)
			}
		})
	}
}

// One request deletes a group while another request creates a port in the group. If the deletion of a group and the creation of a port in
// this group compete, berth refuses exactly one of the two requests.
func TestSecurityGroup_DeleteRacesWithPortUpdate(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/16")
	for range 10 {
		g := c.group("g")
		var created, gone int
		var requests sync.WaitGroup
		requests.Go(func() {
			created, _, _ = c.raw("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"security_groups":[%q]}}`, net, g))
		})
		requests.Go(func() { gone, _, _ = c.raw("DELETE", "/v2.0/security-groups/"+g, "") })
		requests.Wait()
		if !(created == http.StatusCreated && gone == http.StatusConflict || created == http.StatusNotFound && gone == http.StatusNoContent) {
			t.Fatalf("delete a group while a port joins it: got status %d for the port and %d for the group, want exactly one success", created, gone)
		}
	}
}

func TestSecurityGroupRule_ValidatedAndShown(t *testing.T) {
	t.Parallel()
	c := open(t).as("ann:demo")
	web := c.group("web")
	rule := func(more string) string {
		return fmt.Sprintf(`{"security_group_rule":{"security_group_id":%q,"direction":"ingress"%s}}`, web, more)
	}
	const rules = "/v2.0/security-group-rules"
	https := c.must(201, "POST", rules, rule(`,"protocol":"TCP","port_range_min":443,"port_range_max":"443","remote_ip_prefix":"10.1.2.3/8"`))["security_group_rule"].(object)
	for _, good := range []string{`,"protocol":"icmp","port_range_min":8,"port_range_max":0`, `,"protocol":112`, `,"protocol":"any","ethertype":"ipv6"`,
		`,"ethertype":"IPv6","protocol":"icmpv6","remote_ip_prefix":"fd00::1"`, `,"remote_group_id":"` + web + `"`, `,"protocol":null,"remote_group_id":null,"remote_ip_prefix":null`} {
		t.Run(good, func(t *testing.T) {
			c := c.in(t)
			c.must(201, "POST", rules, rule(good))
		})
	}
	shown := c.must(200, "GET", "/v2.0/security-groups/"+web, "")["security_group"].(object)
	want := map[string]int{"egress IPv4 <nil> <nil>-<nil> any": 1, "egress IPv6 <nil> <nil>-<nil> any": 1, "ingress IPv4 tcp 443-443 10.0.0.0/8": 1,
		"ingress IPv4 icmp 8-0 any": 1, "ingress IPv4 112 <nil>-<nil> any": 1, "ingress IPv6 <nil> <nil>-<nil> any": 1,
		"ingress IPv6 icmpv6 <nil>-<nil> fd00::1/128": 1, "ingress IPv4 <nil> <nil>-<nil> its members": 1, "ingress IPv4 <nil> <nil>-<nil> any": 1}
	if d := cmp.Diff(want, rulesOf(shown)); d != "" || shown["revision_number"] != 8.0 {
		t.Errorf("the group after its rules changed: got revision %v, want 8; rules (-want +got):\n%s", shown["revision_number"], d)
	}
	for query, n := range map[string]int{"security_group_id=" + web: 9, "protocol=tcp": 1, "direction=egress": 2, "remote_ip_prefix=10.0.0.0/8": 1, "port_range_min=443": 1,
		"remote_group_id=" + web: 1, "ethertype=IPv6&direction=ingress": 2, "description=": 9} {
		t.Run(query, func(t *testing.T) {
			c := c.in(t)
			if got := len(ids(c.must(200, "GET", rules+"?"+query, ""), "security_group_rules")); got != n {
				t.Errorf("list rules with the filter %s: got %d rules, want %d", query, got, n)
			}
		})
	}
	const unknownID = "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"
	for more, want := range map[string]string{
		`,"protocol":"tcp","port_range_min":443,"port_range_max":443,"remote_ip_prefix":"10.0.0.0/8"`: "409 SecurityGroupRuleExists",
		`,"protocol":"moon"`: "400 SecurityGroupRuleInvalidProtocol", `,"protocol":256`: "400 SecurityGroupRuleInvalidProtocol",
		`,"protocol":"icmpv6"`:                                             "400 SecurityGroupEthertypeConflictWithProtocol",
		`,"port_range_min":443`:                                            "400 SecurityGroupProtocolRequiredWithPorts",
		`,"protocol":"tcp","port_range_min":443`:                           "400 SecurityGroupInvalidPortRange",
		`,"protocol":"tcp","port_range_min":9,"port_range_max":8`:          "400 SecurityGroupInvalidPortRange",
		`,"protocol":"udp","port_range_min":0,"port_range_max":8`:          "400 SecurityGroupInvalidPortValue",
		`,"protocol":"icmp","port_range_max":8`:                            "400 SecurityGroupMissingIcmpType",
		`,"protocol":"icmp","port_range_min":256`:                          "400 SecurityGroupInvalidIcmpValue",
		`,"protocol":"vrrp","port_range_min":1,"port_range_max":1`:         "400 SecurityGroupInvalidProtocolForPort",
		`,"remote_ip_prefix":"fd00::/8"`:                                   "400 SecurityGroupRuleParameterConflict",
		`,"remote_ip_prefix":"10.0.0.0/8","remote_group_id":"` + web + `"`: "400 SecurityGroupMultipleRemoteEntites",
		`,"remote_group_id":"` + unknownID + `"`:                           "404 SecurityGroupNotFound",
		`,"direction":null`:                                                "400 HTTPBadRequest", `,"remote_ip_prefix":"here"`: "400 InvalidCIDR", `,"ethertype":"IPX"`: "400 SecurityGroupRuleInvalidEtherType",
		`,"port_range_min":70000`: "400 SecurityGroupInvalidPortValue", `,"project_id":"other"`: "403 PolicyNotAuthorized", `,"moon":1`: "400 HTTPBadRequest",
	} {
		t.Run(more, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("POST", rules, rule(more)); got != want {
				t.Errorf("create a rule with %s: want %s, got %s", more, want, got)
			}
		})
	}
	path := rules + "/" + https["id"].(string)
	c.must(200, "PUT", path, `{"security_group_rule":{"description":"d"}}`)
	if got := c.fault("PUT", path, `{"security_group_rule":{"protocol":"udp"}}`); got != "400 HTTPBadRequest" {
		t.Error(got)
	}
	if got := c.fault("DELETE", path, "", "If-Match", "revision_number=1"); got != "412 RevisionNumberConstraintFailed" {
		t.Error(got)
	}
	if got := c.as("eve:other").fault("DELETE", path, ""); got != "404 SecurityGroupRuleNotFound" {
		t.Error(got)
	}
	c.must(204, "DELETE", path, "")
	c.must(204, "DELETE", "/v2.0/security-groups/"+web, "")
}

// The journal contains a group before its rules, and both before the ports in the group. A new rule also changes its group.
func TestSecurityGroup_JournalOrderIsGroupRulesPorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(net, "")["id"].(string)
	web, other := c.group("web"), c.group("other")
	c.must(201, "POST", "/v2.0/security-group-rules", fmt.Sprintf(`{"security_group_rule":{"security_group_id":%q,"direction":"ingress","remote_group_id":%q}}`, other, web))
	c.must(200, "PUT", "/v2.0/ports/"+p, `{"port":{"security_groups":["`+web+`"]}}`)
	c.must(200, "PUT", "/v2.0/ports/"+p, `{"port":{"security_groups":[]}}`)
	c.must(204, "DELETE", "/v2.0/security-groups/"+web, "") // also deletes the rule of the other group that refers to this group

	group := []string{"create security_group", "create security_group_rule", "create security_group_rule"}
	want := []string{"create network", "create subnet"}
	want = append(want, append(group, "create security_group_rule", "create security_group_rule", "create port")...)
	want = append(append(want, group...), group...)
	want = append(want, "create security_group_rule", "update security_group", "update port", "update port",
		"delete security_group_rule", "delete security_group_rule", "delete security_group_rule", "delete security_group")
	if d := cmp.Diff(want, c.journaledChanges()); d != "" {
		t.Error(d)
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/security-group-rules?security_group_id="+other, ""), "security_group_rules")); n != 2 {
		t.Errorf("rules after the remote group was deleted: got %d, want 2", n)
	}
	if found := c.must(200, "GET", "/v2.0/ports/"+p, "")["port"].(object)["status"]; found != network.Down {
		t.Error(found)
	}
}
