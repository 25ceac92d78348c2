package neutron_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/internal/api/neutron"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
)

// withPolicy starts another API server on the same store, whose rules are the defaults and those of the given
// file.
func (c cloud) withPolicy(t *testing.T, file string) cloud {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Open(policy.Options{File: path}, neutron.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	c.t, c.url = t, serveAPI(t, neutron.NewWithPolicy(c.store.Network, identity.Noauth{}, rules))+"/networking"
	return c
}

// seeAll is a policy file with which the role auditor sees the objects of the API.
const seeAll = `
"get_network": "role:auditor"
"get_subnet": "role:auditor"
"get_port": "role:auditor"
"get_trunk": "role:auditor"
"get_security_group": "role:auditor"
"get_security_group_rule": "role:auditor"
"get_agent": "role:auditor"
`

// deciding returns a policy file like seeAll in which the rule has another value.
func deciding(rule, check string, others ...string) string {
	var b strings.Builder
	for line := range strings.Lines(seeAll) {
		if !strings.HasPrefix(line, `"`+rule+`":`) {
			b.WriteString(line)
		}
	}
	for _, other := range others {
		if other != rule && !strings.Contains(seeAll, `"`+other+`"`) {
			fmt.Fprintf(&b, "%q: \"role:auditor\"\n", other)
		}
	}
	return b.String() + fmt.Sprintf("%q: %q\n", rule, check)
}

// policyObjects creates one object of each kind and returns their IDs as pairs of a name in braces and an ID.
func policyObjects(c cloud, n int) *strings.Replacer {
	c.t.Helper()
	id := func(kind, path, body string) string {
		return c.must(201, "POST", "/v2.0/"+path, `{"`+kind+`":{"project_id":"demo",`+body+`}}`)[kind].(object)["id"].(string)
	}
	host := fmt.Sprintf("net-p%d", n)
	c.heartbeat(network.DHCPAgent, host)
	agent := c.must(200, "GET", "/v2.0/agents?host="+host, "")["agents"].([]any)[0].(object)["id"].(string)
	net := id("network", "networks", fmt.Sprintf(`"name":"n%d"`, n))
	subnet := id("subnet", "subnets",
		fmt.Sprintf(`"network_id":%q,"ip_version":4,"cidr":"10.%d.0.0/24"`, net, n))
	port := id("port", "ports", fmt.Sprintf(`"network_id":%q,"binding:host_id":"cmp-1"`, net))
	lone := id("port", "ports", fmt.Sprintf(`"network_id":%q`, net))
	parent := id("port", "ports", fmt.Sprintf(`"network_id":%q`, net))
	trunk := id("trunk", "trunks", fmt.Sprintf(`"port_id":%q`, parent))
	group := id("security_group", "security-groups", `"name":"g"`)
	rule := id("security_group_rule", "security-group-rules",
		fmt.Sprintf(`"security_group_id":%q,"direction":"ingress","protocol":"tcp"`, group))
	for path, tags := range map[string]string{
		"networks":        net,
		"subnets":         subnet,
		"ports":           port,
		"trunks":          trunk,
		"security-groups": group,
	} {
		c.must(201, "PUT", "/v2.0/"+path+"/"+tags+"/tags/t", "")
	}
	empty := id("network", "networks", fmt.Sprintf(`"name":"e%d"`, n))
	return strings.NewReplacer(
		"{networks}",
		net,
		"{subnets}",
		subnet,
		"{ports}",
		port,
		"{lone}",
		lone,
		"{trunks}",
		trunk,
		"{security-groups}",
		group,
		"{security-group-rules}",
		rule,
		"{agents}",
		agent,
		"{empty}",
		empty,
		"{network-ip-availabilities}",
		net,
		"{network}",
		net,
		"{project}",
		"other",
		"{alias}",
		"agent",
		"{host}",
		"cmp-1",
		"{tag}",
		"t",
	)
}

// policyBodies are the bodies of requests, by route; other requests have no body.
var policyBodies = map[string]string{
	"POST /v2.0/networks":                   `{"network":{}}`,
	"PUT /v2.0/networks/{id}":               `{"network":{"name":"x"}}`,
	"POST /v2.0/subnets":                    `{"subnet":{"network_id":"{empty}","ip_version":4,"cidr":"10.9.0.0/24"}}`,
	"PUT /v2.0/subnets/{id}":                `{"subnet":{"name":"x"}}`,
	"POST /v2.0/ports":                      `{"port":{"network_id":"{network}"}}`,
	"PUT /v2.0/ports/{id}":                  `{"port":{"name":"x"}}`,
	"POST /v2.0/ports/{id}/bindings":        `{"binding":{"host":"cmp-2"}}`,
	"PUT /v2.0/ports/{id}/bindings/{host}":  `{"binding":{"vnic_type":"normal"}}`,
	"POST /v2.0/trunks":                     `{"trunk":{"port_id":"{lone}"}}`,
	"PUT /v2.0/trunks/{id}":                 `{"trunk":{"name":"x"}}`,
	"PUT /v2.0/trunks/{id}/add_subports":    `{"sub_ports":[]}`,
	"PUT /v2.0/trunks/{id}/remove_subports": `{"sub_ports":[]}`,
	"POST /v2.0/security-groups":            `{"security_group":{"name":"x"}}`,
	"PUT /v2.0/security-groups/{id}":        `{"security_group":{"name":"x"}}`,
	"POST /v2.0/security-group-rules":       `{"security_group_rule":{"security_group_id":"{security-groups}","direction":"egress","protocol":"udp"}}`,
	"PUT /v2.0/security-group-rules/{id}":   `{"security_group_rule":{"description":"x"}}`,
	"PUT /v2.0/agents/{id}":                 `{"agent":{"description":"x"}}`,
	"POST /v2.0/agents/{id}/dhcp-networks":  `{"network_id":"{network}"}`,
	"PUT /v2.0/quotas/{project}":            `{"quota":{"port":7}}`,
}

// denial returns how the API answers a request that the rule of the route denies to a caller with the role
// member.
func denial(route, rule string) string {
	method, path, _ := strings.Cut(route, " ")
	hiding := []string{"get_subnet", "get_port", "get_trunk", "get_security_group",
		"get_security_group_rule", "get_agent", "get_port_binding"}
	hides := method == "GET" &&
		(strings.HasPrefix(rule, "get_network") || slices.Contains(hiding, rule))
	switch {
	case hides && strings.HasSuffix(path, "/bindings"), hides && !strings.Contains(path, "{"):
		return "empty list"
	case hides && !strings.Contains(path, "/bindings/"):
		return "404"
	default:
		return "403"
	}
}

// answerKind sends the request of the route and returns the status, or "empty list".
func (c cloud) answerKind(route string, objects *strings.Replacer, rule, roles string) string {
	c.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	body := policyBodies[route]
	if strings.HasSuffix(path, "/tags") && (method == "POST" || method == "PUT") {
		body = `{"tags":["u"]}`
	}
	collection, _, _ := strings.Cut(strings.TrimPrefix(path, "/v2.0/"), "/")
	if route == "DELETE /v2.0/networks/{id}" {
		collection = "empty"
	}
	if route == "POST /v2.0/ports/{id}/bindings" {
		c.heartbeat(network.OVSAgent, "cmp-2")
	}
	path = objects.Replace(strings.ReplaceAll(path, "{id}", "{"+collection+"}"))
	status, o, _ := c.raw(method, path, objects.Replace(body), "X-Roles", roles)
	fault, _ := o["NeutronError"].(object)
	if status == 403 &&
		(fault["type"] != "PolicyNotAuthorized" || fault["message"] != "rule:"+rule+" is disallowed by policy") {
		c.t.Errorf("%s: got 403 %v, want a PolicyNotAuthorized that names the rule %s", route, o, rule)
	}
	for _, value := range o {
		if list, ok := value.([]any); ok && len(list) == 0 && method == "GET" &&
			!strings.Contains(path, "/tags") &&
			!strings.Contains(path, "subports") {
			return "empty list"
		}
	}
	return fmt.Sprint(status)
}

func TestPolicy_EachRuleDecidesItsRoutes(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.must(
		200, "PUT", "/v2.0/quotas/demo",
		`{"quota":{"network":-1,"subnet":-1,"port":-1,"trunk":-1,"security_group":-1,"security_group_rule":-1}}`,
	)
	n, objects := 1, policyObjects(c, 1)
	for _, rule := range neutron.Policy {
		for _, route := range rule.Guards {
			if _, path, _ := strings.Cut(route, " "); !strings.HasPrefix(path, "/v2.0/") ||
				strings.Contains(path, " ") ||
				rule.Name == "regular_user" {
				continue
			}
			t.Run(rule.Name+" "+route, func(t *testing.T) {
				want := denial(route, rule.Name)
				denied, allowed := c.withPolicy(t, deciding(rule.Name, "!")).as("ann:demo"),
					c.withPolicy(t, deciding(rule.Name, "role:auditor")).as("ann:demo")
				if got := denied.answerKind(route, objects, rule.Name, "auditor,member"); got != want {
					t.Errorf("%s with a rule that allows nothing: got %s, want %s", route, got, want)
				}
				got := allowed.answerKind(route, objects, rule.Name, "member")
				if !slices.Contains([]string{"403", "404", "empty list"}, got) {
					t.Errorf("%s with a rule for another role: got %s, want a refusal", route, got)
				}
				if got := allowed.answerKind(route, objects, rule.Name, "auditor"); got == want ||
					got == "403" ||
					got == "404" ||
					got >= "500" && got < "600" {
					t.Errorf("%s with a rule that allows the role: got %s, want no refusal", route, got)
				}
			})
			if strings.HasPrefix(route, "DELETE ") {
				n++
				objects = policyObjects(c, n) // because the request has deleted an object
			}
		}
	}
}

// attributeValues are values of attributes that have rules.
var attributeValues = map[string]string{
	"shared":                    "true",
	"router:external":           "true",
	"is_default":                "true",
	"provider:network_type":     `"vxlan"`,
	"provider:physical_network": `"p"`,
	"provider:segmentation_id":  "7",
	"segments":                  `[{"provider:network_type":"vxlan"}]`,
	"binding:host_id":           `"cmp-1"`,
	"binding:profile":           `{"a":"b"}`,
	"device_owner":              `"network:dhcp"`,
	"mac_address":               `"fa:16:3e:00:00:77"`,
	"fixed_ips:ip_address":      `[{"ip_address":"10.1.0.77"}]`,
	"port_security_enabled":     "false",
	"allowed_address_pairs":     `[{"ip_address":"10.1.0.78"}]`,
	"extra_dhcp_opts:client-id": `[{"opt_name":"client-id","opt_value":"01:02"}]`,
}

func TestPolicy_EachRuleOfAnAttributeDecides(t *testing.T) {
	t.Parallel()
	c := open(t)
	objects := policyObjects(c, 1)
	for _, rule := range neutron.Policy {
		operation, name, isAttribute := strings.Cut(rule.Name, ":")
		verb, kind, _ := strings.Cut(operation, "_")
		if !isAttribute {
			continue
		}
		t.Run(rule.Name, func(t *testing.T) {
			denied := c.withPolicy(t, deciding(rule.Name, "!", operation)).as("ann:demo")
			allowed := c.withPolicy(t, deciding(rule.Name, "role:auditor", operation)).as("ann:demo")
			path := objects.Replace("/v2.0/" + kind + "s/{" + kind + "s}")
			if verb == "get" {
				for roles, client := range map[string]cloud{"auditor": denied, "admin,auditor": denied, "auditor,x": allowed} {
					_, has := client.must(200, "GET", path, "", "X-Roles", roles)[kind].(object)[name]
					status, _, _ := client.raw("GET", "/v2.0/"+kind+"s?"+name+"=1", "", "X-Roles", roles)
					if sees := roles == "auditor,x"; has != sees || status == 200 && !sees {
						t.Errorf(
							"show %s with the roles %s: got the attribute: %v, a filter by it: %d; want the attribute: %v",
							name, roles, has, status, sees,
						)
					}
				}
				return
			}
			attribute := strings.NewReplacer(":ip_address", "", ":client-id", "").Replace(name)
			body := fmt.Sprintf(`{%q:{%q:%s`, kind, attribute, attributeValues[name])
			method := "PUT"
			if verb == "create" {
				if method, path = "POST", "/v2.0/"+kind+"s"; kind == "port" {
					body += `,"network_id":"{network}"`
				}
			}
			body = objects.Replace(body + "}}")
			if got, want := denied.faultMessage(method, path, body, "X-Roles", "admin,auditor"), "403 PolicyNotAuthorized: rule:"+rule.Name+" is disallowed by policy"; got != want {
				t.Errorf("%s %s %s: got %s, want %s", method, path, body, got, want)
			}
			if status, o, _ := allowed.raw(method, path, body, "X-Roles", "auditor"); status == 403 ||
				status == 404 ||
				status >= 500 {
				t.Errorf("%s %s %s with a rule that allows the role: got %d %v, want no refusal",
					method, path, body, status, o)
			}
		})
	}
}
