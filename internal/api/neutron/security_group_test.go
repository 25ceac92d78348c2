package neutron_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// groupOf returns the ID of the project's group with the given name.
func (c cloud) groupOf(project, name string) string {
	c.t.Helper()
	found := ids(
		c.must(200, "GET", "/v2.0/security-groups?project_id="+project+"&name="+name, ""),
		"security_groups",
	)
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
		requests.Go(func() {
			c.must(201, "POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q}}`, net))
		})
	}
	requests.Wait()

	group := c.groupOf("demo", "default")
	shown := c.must(200, "GET", "/v2.0/security-groups/"+group, "")["security_group"].(object)
	want := map[string]int{
		"egress IPv4 <nil> <nil>-<nil> any":          1,
		"egress IPv6 <nil> <nil>-<nil> any":          1,
		"ingress IPv4 <nil> <nil>-<nil> its members": 1,
		"ingress IPv6 <nil> <nil>-<nil> its members": 1,
	}
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
		"with one named group":         {`,"project_id":"demo","security_groups":["` + group + `"]`, []any{group}},
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

// One request deletes a group while another request creates a port in the group. berth refuses exactly one of
// these two requests.
func TestSecurityGroup_DeleteRacesWithPortUpdate(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/16")
	for range 10 {
		g := c.group("g")
		var created, gone int
		var requests sync.WaitGroup
		requests.Go(func() {
			created, _, _ = c.raw("POST", "/v2.0/ports",
				fmt.Sprintf(`{"port":{"network_id":%q,"security_groups":[%q]}}`, net, g))
		})
		requests.Go(func() { gone, _, _ = c.raw("DELETE", "/v2.0/security-groups/"+g, "") })
		requests.Wait()
		if !(created == http.StatusCreated && gone == http.StatusConflict || created == http.StatusNotFound && gone == http.StatusNoContent) {
			t.Fatalf(
				"delete a group while a port joins it: got status %d for the port and %d for the group, want exactly one success",
				created,
				gone,
			)
		}
	}
}

func TestPort_SecurityGroupsAreDistinctAndOfOneKind(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	stateful := c.group("stateful")
	stateless := c.must(201, "POST", "/v2.0/security-groups", `{"security_group":{"name":"stateless","stateful":false}}`)["security_group"].(object)["id"].(string)
	p := c.port(net, `,"security_groups":["`+stateless+`"]`)["id"].(string)

	for groups, want := range map[string]string{
		stateful + `","` + stateless: "409 SecurityGroupConflict: Error Cannot apply both stateful and stateless security groups on the same port at the same time while attempting the operation.",
		stateful + `","` + stateful:  "400 HTTPBadRequest: Invalid input for security_groups. Reason: Duplicate items in the list: '" + stateful + "'.",
	} {
		t.Run(want, func(t *testing.T) {
			c := c.in(t)
			if d := cmp.Diff(want, c.faultMessage("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"security_groups":["%s"]}}`, net, groups))); d != "" {
				t.Errorf("create a port with the groups %s (-want +got):\n%s", groups, d)
			}
			if d := cmp.Diff(want, c.faultMessage("PUT", "/v2.0/ports/"+p, fmt.Sprintf(`{"port":{"security_groups":["%s"]}}`, groups))); d != "" {
				t.Errorf("update a port to the groups %s (-want +got):\n%s", groups, d)
			}
		})
	}

	if d := cmp.Diff([]any{stateless}, c.must(200, "GET", "/v2.0/ports/"+p, "")["port"].(object)["security_groups"]); d != "" {
		t.Errorf("groups of the port after the refused updates (-want +got):\n%s", d)
	}
}

// A new group comes with a rule for each IP version, so the project needs quota for two rules.
func TestSecurityGroup_NeedsQuotaForItsRules(t *testing.T) {
	t.Parallel()
	c := openWith(t, networkstore.Config{Quota: network.Quota{network.QuotaSecurityRules: 3}}).as("ann:demo")
	const groups = "/v2.0/security-groups"
	first := c.must(201, "POST", groups, `{"security_group":{"name":"a"}}`)["security_group"].(object)["id"].(string)

	want := "409 OverQuota: Quota exceeded for resources: ['security_group_rule']."
	if got := c.faultMessage("POST", groups, `{"security_group":{"name":"b"}}`); got != want {
		t.Errorf("create a group with quota for one more rule: want %s, got %s", want, got)
	}
	if got := ids(c.must(200, "GET", groups+"?name=b", ""), "security_groups"); len(got) != 0 {
		t.Errorf("groups after the refused creation: got %v, want none", got)
	}

	c.must(204, "DELETE", groups+"/"+first, "")
	c.as("admin").must(200, "PUT", "/v2.0/quotas/demo", `{"quota":{"security_group_rule":-1}}`)
	c.must(201, "POST", groups, `{"security_group":{"name":"b"}}`)
}

// The journal contains a group before its rules, and both before the ports in the group. A new rule also
// changes its group.
func TestSecurityGroup_JournalOrderIsGroupRulesPorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(net, "")["id"].(string)
	web, other := c.group("web"), c.group("other")
	c.must(201, "POST", "/v2.0/security-group-rules", fmt.Sprintf(
		`{"security_group_rule":{"security_group_id":%q,"direction":"ingress","remote_group_id":%q}}`,
		other,
		web,
	))
	c.must(200, "PUT", "/v2.0/ports/"+p, `{"port":{"security_groups":["`+web+`"]}}`)
	c.must(200, "PUT", "/v2.0/ports/"+p, `{"port":{"security_groups":[]}}`)
	// also deletes the rule of the other group that refers to this group
	c.must(204, "DELETE", "/v2.0/security-groups/"+web, "")

	group := []string{"create security_group", "create security_group_rule", "create security_group_rule"}
	want := []string{"create network", "create subnet"}
	want = append(
		want,
		append(group, "create security_group_rule", "create security_group_rule", "create port")...)
	want = append(append(want, group...), group...)
	want = append(
		want,
		"create security_group_rule",
		"update security_group",
		"update port",
		"update port",
		"delete security_group_rule",
		"delete security_group_rule",
		"delete security_group_rule",
		"delete security_group",
		"update security_group",
	)
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
