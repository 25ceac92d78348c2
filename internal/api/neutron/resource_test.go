package neutron_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestIfMatch_StaleRevisionIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/29")
	p := c.port(net, `,"binding:host_id":"cmp-1"`)
	path := "/v2.0/ports/" + p["id"].(string)

	after := c.must(200, "PUT", path, `{"port":{"name":"a"}}`, "If-Match", fmt.Sprintf(`"revision_number=%v"`, p["revision_number"]))["port"].(object)
	if after["revision_number"] != 2.0 {
		t.Errorf("update with the current revision in If-Match: got revision %v, want 2",
			after["revision_number"])
	}
	for header, want := range map[string]string{
		`revision_number=1`:                    "412 RevisionNumberConstraintFailed",
		`revision_number=x`:                    "400 BadRequest",
		`revision_number=2, revision_number=2`: "400 BadRequest",
	} {
		t.Run(header, func(t *testing.T) {
			c := c.in(t)
			for _, method := range []string{"PUT", "DELETE"} {
				if got := c.fault(method, path, `{"port":{"name":"b"}}`, "If-Match", header); got != want {
					t.Errorf("%s with the header If-Match: %s: want %s, got %s", method, header, want, got)
				}
			}
		})
	}
	same := c.must(200, "PUT", path, `{"port":{}}`, "If-Match", `"etag"`)["port"].(object)
	if same["revision_number"] != 2.0 {
		t.Errorf("update without attributes: got revision %v, want the unchanged revision 2",
			same["revision_number"])
	}
	c.must(204, "DELETE", path, "", "If-Match", "revision_number=2")
}

func TestProject_OtherProjectsSeeAndChangeNothing(t *testing.T) {
	t.Parallel()
	c := open(t)
	mine := c.as("u:mine")
	net, subnet := mine.createNetwork("10.0.0.0/29")
	p := mine.port(net, `,"device_owner":"compute:nova"`)
	sentence := p["berth:why"].(object)["sentence"].(string)
	if !strings.Contains(sentence, "for DHCP since") {
		t.Errorf("berth:why as a member sees it: got %q, want no host name", sentence)
	}
	paths := []string{"/v2.0/networks/" + net, "/v2.0/subnets/" + subnet, "/v2.0/ports/" + p["id"].(string)}
	for key := range p {
		if strings.HasPrefix(key, "binding:") && key != "binding:vnic_type" {
			t.Errorf(
				"a member sees the attribute %s; want no binding attribute except binding:vnic_type",
				key,
			)
		}
	}

	theirs := c.as("u:theirs")
	for _, path := range paths {
		resourceName := strings.TrimSuffix(strings.Split(path, "/")[2], "s")
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if got := theirs.fault(method, path, `{"`+resourceName+`":{}}`); !strings.HasPrefix(got, "404 ") {
				t.Errorf("another project sends %s for %s: got %s, want 404", method, path, got)
			}
		}
		got := ids(theirs.must(200, "GET", "/v2.0/"+resourceName+"s", ""), resourceName+"s")
		if len(got) != 0 {
			t.Errorf("another project lists %ss: got %v, want none", resourceName, got)
		}
	}
	if got := theirs.fault("POST", "/v2.0/ports", `{"port":{"network_id":"`+net+`"}}`); got != "404 NetworkNotFound" {
		t.Errorf("create a port on another project's network: got %s, want 404 NetworkNotFound", got)
	}
	if got := mine.fault("PUT", paths[2], `{"port":{"mac_address":"fa:16:3e:00:00:01"}}`); got != "403 PolicyNotAuthorized" {
		t.Errorf("a member sets the MAC of its port: got %s, want 403 PolicyNotAuthorized", got)
	}
	for _, body := range []string{`"binding:host_id":"cmp-1"`, `"binding:profile":{}`} {
		t.Run(body, func(t *testing.T) {
			if got := mine.fault("POST", "/v2.0/ports", `{"port":{"network_id":"`+net+`",`+body+`}}`); got != "403 PolicyNotAuthorized" {
				t.Errorf("a member creates a port with %s: got %s, want 403 PolicyNotAuthorized", body, got)
			}
		})
	}
	if got := mine.fault("GET", "/v2.0/ports?binding:host_id=cmp-1", ""); got != "400 HTTPBadRequest" {
		t.Errorf("a member filters ports by host: got %s, want 400 HTTPBadRequest", got)
	}

	shared := c.must(201, "POST", "/v2.0/networks", `{"network":{"shared":true}}`)["network"].(object)["id"].(string)
	theirs.must(200, "GET", "/v2.0/networks/"+shared, "")
	theirs.port(shared, "")
	if got := theirs.fault("PUT", "/v2.0/networks/"+shared, `{"network":{"name":"x"}}`); got != "403 PolicyNotAuthorized" {
		t.Errorf("another project renames a shared network: got %s, want 403 PolicyNotAuthorized", got)
	}
	if got := theirs.fault("POST", "/v2.0/ports", `{"port":{"network_id":"`+shared+`","device_owner":"network:dhcp"}}`); got != "403 PolicyNotAuthorized" {
		t.Errorf(
			"another project creates a DHCP port on a shared network: got %s, want 403 PolicyNotAuthorized",
			got,
		)
	}
}

// Neutron hides what only administrators may see: lists are empty, and single objects do not exist.
func TestPolicy_MemberSeesNoAdminOnlyObjects(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/29")
	p := c.port(net, `,"binding:host_id":"cmp-1","device_owner":"compute:nova","project_id":"demo"`)["id"].(string)
	agent := ids(c.must(200, "GET", "/v2.0/agents?host=cmp-1", ""), "agents")[0]

	ann := c.as("ann:demo")
	for path, collection := range map[string]string{"/v2.0/agents": "agents", "/v2.0/agents?host=cmp-1&limit=1": "agents", "/v2.0/ports/" + p + "/bindings": "bindings"} {
		t.Run(path, func(t *testing.T) {
			if got := ann.in(t).must(200, "GET", path, "")[collection].([]any); len(got) != 0 {
				t.Errorf("a member lists %s: got %v, want none", collection, got)
			}
		})
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if got := ann.fault(method, "/v2.0/agents/"+agent, `{"agent":{"description":"x"}}`); got != "404 AgentNotFound" {
			t.Errorf("a member sends %s for an agent: got %s, want 404 AgentNotFound", method, got)
		}
	}
	for _, path := range []string{"/v2.0/agents/" + agent + "/dhcp-networks", "/v2.0/networks/" + net + "/dhcp-agents"} {
		if got := ann.fault("GET", path, ""); got != "403 PolicyNotAuthorized" {
			t.Errorf("a member requests %s: got %s, want 403 PolicyNotAuthorized", path, got)
		}
	}
	if got := ann.fault("GET", "/v2.0/agents?moon=1", ""); got != "400 HTTPBadRequest" {
		t.Errorf("a member lists agents with an unknown filter: got %s, want 400 HTTPBadRequest", got)
	}
	if got := c.must(200, "GET", "/v2.0/agents/"+agent, "")["agent"].(object)["description"]; got != nil {
		t.Errorf("description of the agent after the member's requests: got %v, want none", got)
	}
}

func TestProject_OnlyAdministratorsNameAnotherProject(t *testing.T) {
	t.Parallel()
	c := open(t)
	ann := c.as("ann:demo")
	net, subnet := ann.createNetwork("10.0.0.0/29")
	p := ann.port(net, "")["id"].(string)
	want := "400 HTTPBadRequest: Specifying 'project_id' other than the authenticated project in request is not allowed for the current user."
	for collection, body := range map[string]string{
		"networks":          `{"network":{%s}}`,
		"subnets":           `{"subnet":{"network_id":"` + net + `","ip_version":4,"cidr":"10.1.0.0/29",%s}}`,
		"ports":             `{"port":{"network_id":"` + net + `",%s}}`,
		"trunks":            `{"trunk":{"port_id":"` + p + `",%s}}`,
		"security-groups":   `{"security_group":{"name":"g",%s}}`,
		"subnets/" + subnet: `{"subnet":{%s}}`,
	} {
		t.Run(collection, func(t *testing.T) {
			method := "POST"
			if strings.Contains(collection, "/") {
				method = "PUT"
			}
			for _, project := range []string{`"project_id":"theirs"`, `"tenant_id":"theirs"`} {
				if got := ann.in(t).faultMessage(method, "/v2.0/"+collection, fmt.Sprintf(body, project)); got != want {
					t.Errorf("%s with %s by a member: got %s, want %s", method, project, got, want)
				}
			}
			if method == "PUT" {
				return
			}
			for _, project := range []string{`"project_id":null`, `"tenant_id":null`, `"project_id":null,"tenant_id":null`} {
				created := ann.in(t).must(201, method, "/v2.0/"+collection, fmt.Sprintf(body, project))
				for _, o := range created {
					if got := o.(object)["project_id"]; got != "demo" {
						t.Errorf("project of an object that was created with %s: got %v, want demo",
							project, got)
					}
					ann.in(t).must(204, "DELETE", "/v2.0/"+collection+"/"+o.(object)["id"].(string), "")
				}
			}
		})
	}
}

func TestPolicy_MemberMaySendUnchangedAdminValues(t *testing.T) {
	t.Parallel()
	c := open(t)
	ann := c.as("u:demo")
	net := ann.must(201, "POST", "/v2.0/networks", `{"network":{"shared":false,"router:external":"False"}}`)["network"].(object)["id"].(string)
	for method, said := range map[string]string{"POST": `"shared":true`, "PUT": `"shared":false`} {
		t.Run(method, func(t *testing.T) {
			path := map[string]string{"POST": "/v2.0/networks", "PUT": "/v2.0/networks/" + net}[method]
			if got := ann.fault(method, path, `{"network":{`+said+`}}`); got != "403 PolicyNotAuthorized" {
				t.Errorf(
					"a member sends %s for a network with %s: got %s, want 403 PolicyNotAuthorized",
					method, said, got,
				)
			}
		})
	}

	// The administrator adds a rule to the member's security group. Both the administrator and the member see
	// the rule that the administrator has added, but only the administrator may delete the rule.
	group := ann.group("g")
	rule := c.must(201, "POST", "/v2.0/security-group-rules", fmt.Sprintf(`{"security_group_rule":{"security_group_id":%q,"direction":"ingress"}}`, group))["security_group_rule"].(object)["id"].(string)
	path := "/v2.0/security-group-rules/" + rule
	ann.must(200, "GET", path, "")
	if got := ann.fault("DELETE", path, ""); got != "403 PolicyNotAuthorized" {
		t.Errorf(
			"a member deletes the rule that an administrator added to its group: got %s, want 403 PolicyNotAuthorized",
			got,
		)
	}
	if got := c.as("u:other").fault("GET", path, ""); got != "404 SecurityGroupRuleNotFound" {
		t.Errorf(
			"another project shows the rule of the member's group: got %s, want 404 SecurityGroupRuleNotFound",
			got,
		)
	}
}
