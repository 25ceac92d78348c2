package journal

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func refList(all []Ref) string {
	words := make([]string, len(all))
	for i, r := range all {
		words[i] = r.Type + " " + r.ID
	}
	return strings.Join(words, ", ")
}

func TestReferences_OfEachType(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, data, needs, names string }{
		{"policy", `{"id":"q"}`, "", ""},
		{"security_group", `{"id":"g","security_group_rules":[{"id":"r"}]}`, "", ""},
		{"security_group_rule", `{"security_group_id":"g","remote_group_id":"h"}`, "security_group g, security_group h", ""},
		{"security_group_rule", `{"security_group_id":"g","remote_group_id":"g"}`, "security_group g", ""},
		{"network", `{"qos_policy_id":"q"}`, "policy q", ""},
		{"network", `{"qos_policy_id":null}`, "", ""},
		{"network", `{}`, "", ""},
		{"subnet", `{"network_id":"n"}`, "network n", ""},
		{"port", `{"network_id":"n","fixed_ips":[{"subnet_id":"s"},{"subnet_id":"s"},{"subnet_id":"t"}],"qos_policy_id":"q"}`,
			"network n, subnet s, subnet t, policy q", ""},
		{"port", `{"network_id":"n","security_groups":["g",{"id":"h"}]}`, "network n, security_group g, security_group h", ""},
		{"port", `{"network_id":"n","device_owner":"network:router_interface","device_id":"r"}`, "network n", "router r"},
		{"port", `{"network_id":"n","device_owner":"compute:nova","device_id":"vm"}`, "network n", ""},
		{"router", `{"gw_port_id":"p","external_gateway_info":{"network_id":"n"}}`, "port p, network n", ""},
		{"router", `{"gw_port_id":null,"external_gateway_info":null}`, "", ""},
		{"floatingip", `{"floating_network_id":"n","port_id":"p","router_id":"r"}`, "network n, port p, router r", ""},
		{"floatingip", `{"floating_network_id":"n","port_id":null,"router_id":null}`, "network n", ""},
		{"trunk", `{"port_id":"p","sub_ports":[{"port_id":"q"},{"port_id":"r"}]}`, "port p, port q, port r", ""},
		{"l2_gateway", `{}`, "", ""},
		{"l2gateway_connection", `{"network_id":"n","l2_gateway_id":"g"}`, "network n, l2_gateway g", ""},
		{"flowclassifier", `{"logical_source_port":"p","logical_destination_port":null}`, "port p", ""},
		{"portpair", `{"ingress":"p","egress":"q"}`, "port p, port q", ""},
		{"portpairgroup", `{"port_pairs":["x","y"]}`, "portpair x, portpair y", ""},
		{"portchain", `{"port_pair_groups":["x"],"flow_classifiers":["y"]}`, "portpairgroup x, flowclassifier y", ""},
		{"bgpvpn", `{"networks":["n"],"routers":["r"]}`, "network n, router r", ""},
		{"bgpvpn", `{"networks":[],"routers":[]}`, "", ""},
		{"loadbalancer", `{"vip_subnet_id":"s","vip_port_id":"p"}`, "subnet s, port p", ""},
		{"listener", `{"loadbalancers":[{"id":"l"}],"default_pool_id":"p"}`, "loadbalancer l", "pool p"},
		{"pool", `{"listeners":[{"id":"l"}]}`, "listener l", ""},
		{"member", `{"pool_id":"p","subnet_id":"s"}`, "pool p, subnet s", ""},
		{"healthmonitor", `{"pools":[{"id":"p"}]}`, "pool p", ""},
		{"port", `{"network_id":7,"fixed_ips":{"subnet_id":["s"]},"security_groups":[[["g"]],null,{"id":null}]}`, "subnet s, security_group g", ""},
	} {
		t.Run(tt.typ+" "+tt.data, func(t *testing.T) {
			t.Parallel()
			needs, names, err := References(tt.typ, []byte(tt.data))
			if err != nil || refList(needs) != tt.needs || refList(names) != tt.names {
				t.Errorf("References: got needs %q and mentions %q (error %v), want %q and %q",
					refList(needs), refList(names), err, tt.needs, tt.names)
			}
		})
	}
}

func TestTypes_ParentsBeforeChildren(t *testing.T) {
	t.Parallel()
	for i, k := range objectTypes {
		for _, l := range k.needs {
			if at := slices.Index(Types(), l.typ); at < 0 || at >= i && l.typ != k.typ {
				t.Errorf("order of the types: %s needs %s, which must come before it but does not",
					k.typ, l.typ)
			}
		}
		for _, l := range k.mentions {
			if !IsKnownType(l.typ) {
				t.Errorf("type %s mentions the type %s, which the journal does not know", k.typ, l.typ)
			}
		}
	}
}

func TestChange_KeepsReferencesThatItsObjectNoLongerHas(t *testing.T) {
	t.Parallel()
	before, err := Change{
		Object: Ref{"floatingip", "f"},
		Data:   []byte(`{"floating_network_id":"n","port_id":"p","router_id":"r"}`),
	}.WithReferences(nil)
	if err != nil {
		t.Fatal(err)
	}

	after, err := Change{
		Object: Ref{"floatingip", "f"},
		Data:   []byte(`{"floating_network_id":"n","port_id":null,"router_id":null}`),
	}.WithReferences(&before)

	if err != nil || refList(after.Parents) != "network n" || refList(after.Mentioned) != "port p, router r" {
		t.Errorf(
			"references after an update that removes the port and the router: got parents %q and former parents %q (error %v), want network n as the parent, port p and router r as former parents",
			refList(after.Parents), refList(after.Mentioned), err,
		)
	}
}

func TestWriteRequest_PathOfEachType(t *testing.T) {
	t.Parallel()
	collections := map[string]string{
		"network":              "networks",
		"subnet":               "subnets",
		"port":                 "ports",
		"router":               "routers",
		"floatingip":           "floatingips",
		"security_group":       "security-groups",
		"security_group_rule":  "security-group-rules",
		"policy":               "qos/policies",
		"trunk":                "trunks",
		"l2_gateway":           "l2-gateways",
		"l2gateway_connection": "l2gateway-connections",
		"flowclassifier":       "sfc/flowclassifiers",
		"portpair":             "sfc/portpairs",
		"portpairgroup":        "sfc/portpairgroups",
		"portchain":            "sfc/portchains",
		"bgpvpn":               "bgpvpns",
		"loadbalancer":         "lbaas/loadbalancers",
		"listener":             "lbaas/listeners",
		"pool":                 "lbaas/pools",
		"member":               "lbaas/pools/pool%2F1/members",
		"healthmonitor":        "lbaas/healthmonitors",
	}
	types := Types()
	slices.Sort(types)
	var want []string
	for typ, collection := range collections {
		want = append(want, typ)
		for op, path := range map[Operation]string{Create: "POST /" + collection, Update: "PUT /" + collection + "/id1", Delete: "DELETE /" + collection + "/id1"} {
			e := entry(op, typ, `{"id":"id1","pool_id":"pool/1"}`)
			r, err := WriteRequest(e)
			if typ == "l2gateway_connection" && op == Update {
				if err == nil {
					t.Errorf("update of an l2gateway_connection: got request %+v, want an error", r)
				}
				continue
			}
			if err != nil || r.Method+" "+r.Path != path {
				t.Errorf("WriteRequest to %s a %s: got %s %s (error %v), want %s",
					op, typ, r.Method, r.Path, err, path)
			}
			if _, envelope := decoded(t, string(orEmpty(r.Body)))[typ]; envelope == (op == Delete) {
				t.Errorf(
					"WriteRequest to %s a %s: got body %s, want the object in its JSON envelope, or no body for a delete",
					op, typ, r.Body,
				)
			}
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, types); d != "" {
		t.Errorf("types in the table objectTypes differ (-want +got):\n%s", d)
	}
}

func orEmpty(raw []byte) []byte {
	if raw == nil {
		return []byte(`{}`)
	}
	return raw
}

func TestWriteRequest_ConvertsEachTypeForTheController(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, typ, data, create, update string }{
		{"router", "router", `{"id":"r","name":"x","status":"ACTIVE","project_id":"0123456789abcdef0123456789abcdef","gw_port_id":null}`,
			`{"id":"r","name":"x","status":"ACTIVE","project_id":"0123456789abcdef0123456789abcdef","tenant_id":"0123456789abcdef0123456789abcdef","gw_port_id":null}`, `{"name":"x","gw_port_id":null}`},
		{"floating IP without a port", "floatingip", `{"id":"f","port_id":null,"fixed_ip_address":null,"router_id":null}`,
			`{"id":"f","port_id":null,"fixed_ip_address":null,"router_id":null}`, `{"id":"f"}`},
		{"rule for ICMP on IPv6", "security_group_rule", `{"ethertype":"IPv6","protocol":"ipv6-icmp"}`,
			`{"ethertype":"IPv6","protocol":"icmpv6"}`, `{"ethertype":"IPv6","protocol":"icmpv6"}`},
		{"rule for ICMP", "security_group_rule", `{"ethertype":"IPv4","protocol":"icmp"}`,
			`{"ethertype":"IPv4","protocol":"icmp"}`, `{"ethertype":"IPv4","protocol":"icmp"}`},
		{"rule with a known name", "security_group_rule", `{"protocol":"ah"}`, `{"protocol":"51"}`, `{"protocol":"51"}`},
		{"rule with a number", "security_group_rule", `{"protocol":"112"}`, `{"protocol":"112"}`, `{"protocol":"112"}`},
		{"rule for all", "security_group_rule", `{"protocol":null}`, `{"protocol":null}`, `{"protocol":null}`},
		{"trunk", "trunk", `{"id":"t","status":"DOWN"}`, `{"id":"t","status":"ACTIVE"}`, `{"id":"t","status":"ACTIVE"}`},
		{"policy with two rules of one type", "policy",
			`{"id":"q","project_id":"0123456789abcdef0123456789abcdef","rules":[{"id":"a","type":"bandwidth_limit","qos_policy_id":"q","max_kbps":1},{"id":"b","type":"bandwidth_limit"},{"id":"c","type":"minimum_bandwidth"}]}`,
			`{"id":"q","project_id":"0123456789abcdef0123456789abcdef","tenant_id":"0123456789abcdef0123456789abcdef","dscp_marking_rules":[],"minimum_bandwidth_rules":[{"id":"c","tenant_id":"0123456789abcdef0123456789abcdef"}],
				"bandwidth_limit_rules":[{"id":"a","max_kbps":1,"tenant_id":"0123456789abcdef0123456789abcdef"},{"id":"b","tenant_id":"0123456789abcdef0123456789abcdef"}]}`,
			`{"id":"q","project_id":"0123456789abcdef0123456789abcdef","tenant_id":"0123456789abcdef0123456789abcdef","dscp_marking_rules":[],"minimum_bandwidth_rules":[{"id":"c","tenant_id":"0123456789abcdef0123456789abcdef"}],
				"bandwidth_limit_rules":[{"id":"a","max_kbps":1,"tenant_id":"0123456789abcdef0123456789abcdef"},{"id":"b","tenant_id":"0123456789abcdef0123456789abcdef"}]}`},
		{"connection", "l2gateway_connection", `{"l2_gateway_id":"g"}`, `{"gateway_id":"g"}`, ""},
	} {
		for op, want := range map[Operation]string{Create: tt.create, Update: tt.update} {
			if want == "" {
				continue
			}
			t.Run(tt.name+" "+string(op), func(t *testing.T) {
				t.Parallel()
				r, err := WriteRequest(entry(op, tt.typ, tt.data))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(decoded(t, `{"`+tt.typ+`":`+want+`}`), decoded(t, string(r.Body))); d != "" {
					t.Errorf("body of the write request differs (-want +got):\n%s", d)
				}
			})
		}
	}
	for _, data := range []string{`{"rules":7}`, `{"rules":[7]}`, `{"rules":[{"id":"a"}]}`} {
		if r, err := WriteRequest(entry(Create, "policy", data)); err == nil {
			t.Errorf("create a policy with malformed rules %s: got body %s, want an error", data, r.Body)
		}
	}
}
