package neutron_test

import (
	"testing"
)

// A policy file that lets a role see the objects of other projects lets it read them, and nothing else.
func TestPolicy_WhoSeesAnObjectOfAnotherProjectAddsNothingToIt(t *testing.T) {
	t.Parallel()
	c := open(t)
	theirs := c.as("eve:theirs")
	net, _ := theirs.createNetwork("10.0.0.0/24")
	group := theirs.must(201, "POST", "/v2.0/security-groups", `{"security_group":{"name":"g"}}`)["security_group"].(object)["id"].(string)
	own := c.as("ann:demo")
	ownNet, _ := own.createNetwork("10.0.1.0/24")
	ownGroup := own.must(201, "POST", "/v2.0/security-groups", `{"security_group":{"name":"own"}}`)["security_group"].(object)["id"].(string)
	port := own.port(ownNet, "")["id"].(string)
	auditor := c.withPolicy(t, `
"get_network": "rule:admin_or_service or rule:project_reader or role:auditor"
"get_security_group": "rule:admin_or_service or rule:project_reader or role:auditor"
`).as("ann:demo")
	for _, kind := range []string{"networks/" + net, "security-groups/" + group} {
		auditor.must(200, "GET", "/v2.0/"+kind, "", "X-Roles", "auditor,member")
	}

	rule := func(group string) string {
		return `{"security_group_rule":{"security_group_id":"` + group + `","direction":"ingress","protocol":"tcp"}}`
	}
	for _, tc := range []struct {
		name, method, path, body string
		want                     int
	}{
		{"a port on a network of another project", "POST", "ports", `{"port":{"network_id":"` + net + `"}}`, 403},
		{"a port on an own network", "POST", "ports", `{"port":{"network_id":"` + ownNet + `"}}`, 201},
		{"a rule in a group of another project", "POST", "security-group-rules", rule(group), 403},
		{"a rule in an own group", "POST", "security-group-rules", rule(ownGroup), 201},
		{"a new port in a group of another project", "POST", "ports", `{"port":{"network_id":"` + ownNet + `","security_groups":["` + group + `"]}}`, 403},
		{"a new port in an own group", "POST", "ports", `{"port":{"network_id":"` + ownNet + `","security_groups":["` + ownGroup + `"]}}`, 201},
		{"a port moves to a group of another project", "PUT", "ports/" + port, `{"port":{"security_groups":["` + group + `"]}}`, 403},
		{"a port moves to an own group", "PUT", "ports/" + port, `{"port":{"security_groups":["` + ownGroup + `"]}}`, 200},
	} {
		if got, o, _ := auditor.raw(tc.method, "/v2.0/"+tc.path, tc.body, "X-Roles", "auditor,member"); got != tc.want {
			t.Errorf("%s: got %d %v, want %d", tc.name, got, o, tc.want)
		}
	}
	// the role service sees every object, and has no right to change a security group
	if got, o, _ := own.raw("POST", "/v2.0/security-group-rules", rule(group), "X-Roles", "service,member"); got != 403 {
		t.Errorf("a service that is a member of its project adds a rule to a group of another project: got %d %v, want 403", got, o)
	}
}
