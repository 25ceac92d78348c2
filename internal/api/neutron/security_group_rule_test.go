package neutron_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
)

func TestSecurityGroupRule_ValidatedAndShown(t *testing.T) {
	t.Parallel()
	c := open(t).as("ann:demo")
	web := c.group("web")
	rule := func(more string) string {
		return fmt.Sprintf(`{"security_group_rule":{"security_group_id":%q,"direction":"ingress"%s}}`,
			web, more)
	}
	const rules = "/v2.0/security-group-rules"
	https := c.must(201, "POST", rules, rule(`,"protocol":"TCP","port_range_min":443,"port_range_max":"443","remote_ip_prefix":"10.1.2.3/8"`))["security_group_rule"].(object)
	for _, good := range []string{`,"protocol":"icmp","port_range_min":8,"port_range_max":0`, `,"protocol":112`, `,"protocol":"any","ethertype":"ipv6"`,
		`,"ethertype":"IPv6","protocol":"icmpv6","remote_ip_prefix":"fd00::1"`, `,"ethertype":"IPv6","protocol":1`, `,"protocol":"hopopt"`, `,"protocol":"dccp","port_range_min":1,"port_range_max":65535`,
		`,"remote_group_id":"` + web + `"`, `,"protocol":null,"remote_group_id":null,"remote_ip_prefix":null`} {
		t.Run(good, func(t *testing.T) {
			c := c.in(t)
			c.must(201, "POST", rules, rule(good))
		})
	}
	shown := c.must(200, "GET", "/v2.0/security-groups/"+web, "")["security_group"].(object)
	want := map[string]int{
		"egress IPv4 <nil> <nil>-<nil> any":              1,
		"egress IPv6 <nil> <nil>-<nil> any":              1,
		"ingress IPv4 tcp 443-443 10.0.0.0/8":            1,
		"ingress IPv4 icmp 8-0 any":                      1,
		"ingress IPv4 112 <nil>-<nil> any":               1,
		"ingress IPv6 <nil> <nil>-<nil> any":             1,
		"ingress IPv6 ipv6-icmp <nil>-<nil> fd00::1/128": 1,
		"ingress IPv6 58 <nil>-<nil> any":                1,
		"ingress IPv4 hopopt <nil>-<nil> any":            1,
		"ingress IPv4 dccp <nil>-<nil> any":              1,
		"ingress IPv4 <nil> <nil>-<nil> its members":     1,
		"ingress IPv4 <nil> <nil>-<nil> any":             1,
	}
	if d := cmp.Diff(want, rulesOf(shown)); d != "" || shown["revision_number"] != 11.0 {
		t.Errorf("the group after its rules changed: got revision %v, want 11; rules (-want +got):\n%s",
			shown["revision_number"], d)
	}
	for query, n := range map[string]int{
		"security_group_id=" + web:         12,
		"protocol=tcp":                     1,
		"direction=egress":                 2,
		"remote_ip_prefix=10.0.0.0/8":      1,
		"port_range_min=443":               1,
		"remote_group_id=" + web:           1,
		"ethertype=IPv6&direction=ingress": 3,
		"description=":                     12,
	} {
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
		`,"protocol":"moon"`:                                               "400 SecurityGroupRuleInvalidProtocol",
		`,"protocol":256`:                                                  "400 SecurityGroupRuleInvalidProtocol",
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
		`,"remote_group_id":"web"`:                                         "404 SecurityGroupNotFound",
		`,"direction":null`:                                                "400 HTTPBadRequest",
		`,"remote_ip_prefix":"here"`:                                       "400 InvalidCIDR",
		`,"ethertype":"IPX"`:                                               "400 SecurityGroupRuleInvalidEtherType",
		`,"port_range_min":70000`:                                          "400 SecurityGroupInvalidPortValue",
		`,"project_id":"other"`:                                            "400 HTTPBadRequest",
		`,"moon":1`:                                                        "400 HTTPBadRequest",
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

// Rules are equal if they allow the same traffic: a protocol has a name and a number, and a prefix of length
// 0 means the same as no prefix.
func TestSecurityGroupRule_EqualRulesConflict(t *testing.T) {
	t.Parallel()
	c := open(t)
	const path = "/v2.0/security-group-rules"
	for _, pair := range []struct{ first, second, want string }{
		{`"protocol":"tcp"`, `"protocol":"6"`, "409 SecurityGroupRuleExists"},
		{`"protocol":17`, `"protocol":"UDP"`, "409 SecurityGroupRuleExists"},
		{`"protocol":"tcp","port_range_min":80,"port_range_max":80`, `"protocol":6,"port_range_min":80,"port_range_max":80`, "409 SecurityGroupRuleExists"},
		{`"ethertype":"IPv6","protocol":"icmp"`, `"ethertype":"IPv6","protocol":"58"`, "409 SecurityGroupRuleExists"},
		{`"protocol":"tcp"`, `"protocol":"6","remote_ip_prefix":"0.0.0.0/0"`, "409 SecurityGroupRuleExists"},
		{`"ethertype":"IPv6","remote_ip_prefix":"::/0"`, `"ethertype":"IPv6"`, "409 SecurityGroupRuleExists"},
		{`"protocol":"tcp","description":"a"`, `"protocol":"tcp","description":"b"`, "409 SecurityGroupRuleExists"},
		{`"protocol":"tcp"`, `"protocol":"17"`, ""},
		{`"protocol":"tcp"`, `"protocol":"6","port_range_min":80,"port_range_max":80`, ""},
		{`"protocol":"tcp","remote_ip_prefix":"0.0.0.0/0"`, `"protocol":"tcp","remote_ip_prefix":"10.0.0.0/8"`, ""},
		{`"ethertype":"IPv6","protocol":"tcp"`, `"protocol":"tcp"`, ""},
	} {
		t.Run(pair.first+" and "+pair.second, func(t *testing.T) {
			c := c.in(t)
			group := c.group("web")
			rule := func(attributes string) string {
				return fmt.Sprintf(
					`{"security_group_rule":{"security_group_id":%q,"direction":"ingress",%s}}`,
					group,
					attributes,
				)
			}
			first := c.must(201, "POST", path, rule(pair.first))["security_group_rule"].(object)

			if pair.want == "" {
				c.must(201, "POST", path, rule(pair.second))
				return
			}
			if got := c.fault("POST", path, rule(pair.second)); got != pair.want {
				t.Errorf("create an equal rule: want %s, got %s", pair.want, got)
			}
			refused := c.must(409, "POST", path, rule(pair.second))["NeutronError"].(object)
			if want := fmt.Sprintf("Security group rule already exists. Rule id is %s.", first["id"]); refused["message"] != want {
				t.Errorf("message about the equal rule: want %q, got %q", want, refused["message"])
			}
		})
	}
}

// The protocols that only IPv6 has are refused for IPv4, by name and by number.
func TestSecurityGroupRule_ProtocolsOfIPv6Only(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, protocol := range []string{"ipv6-encap", "ipv6-frag", "ipv6-icmp", "icmpv6", "ipv6-nonxt", "ipv6-opts", "ipv6-route", "41", "43", "44", "58", "59", "60"} {
		t.Run(protocol, func(t *testing.T) {
			c := c.in(t)
			group := c.group(protocol)
			rule := func(etherType string) string {
				return fmt.Sprintf(
					`{"security_group_rule":{"security_group_id":%q,"direction":"ingress","ethertype":%q,"protocol":%q}}`,
					group, etherType, protocol,
				)
			}
			want := "400 SecurityGroupEthertypeConflictWithProtocol: Invalid ethertype IPv4 for protocol " + protocol + "."
			if got := c.faultMessage("POST", "/v2.0/security-group-rules", rule(network.IPv4)); got != want {
				t.Errorf("create an IPv4 rule: want %s, got %s", want, got)
			}
			c.must(201, "POST", "/v2.0/security-group-rules", rule(network.IPv6))
		})
	}
}

func TestSecurityGroupRule_PortRangeMessages(t *testing.T) {
	t.Parallel()
	c := open(t)
	group := c.group("web")
	for more, want := range map[string]string{
		`"icmp","port_range_max":8`:                       "400 SecurityGroupMissingIcmpType: ICMP code (port-range-max) 8 is provided but ICMP type (port-range-min) is missing.",
		`"1","port_range_min":256,"port_range_max":300`:   "400 SecurityGroupInvalidIcmpValue: Invalid value for ICMP type (port_range_min) 256. It must be 0 to 255.",
		`"icmp","port_range_max":300`:                     "400 SecurityGroupInvalidIcmpValue: Invalid value for ICMP code (port_range_max) 300. It must be 0 to 255.",
		`"vrrp","port_range_min":1,"port_range_max":1`:    "400 SecurityGroupInvalidProtocolForPort: Ports cannot be specified for protocol 112. Ports are only supported for DCCP, SCTP, TCP, UDP, UDPLITE.",
		`"tcp","port_range_min":0,"port_range_max":70`:    "400 SecurityGroupInvalidPortValue: Invalid value for port 0",
		`"tcp","port_range_min":70`:                       "400 SecurityGroupInvalidPortRange: For TCP/UDP protocols, port_range_min must be <= port_range_max",
		`"tcp","port_range_min":7,"port_range_max":70000`: "400 SecurityGroupInvalidPortValue: Invalid value for port 70000",
		`null,"port_range_min":256`:                       "400 SecurityGroupProtocolRequiredWithPorts: Must also specify protocol if port range is given.",
		`null,"remote_group_id":"here"`:                   "404 SecurityGroupNotFound: Security group here does not exist",
	} {
		t.Run(more, func(t *testing.T) {
			c := c.in(t)
			body := fmt.Sprintf(
				`{"security_group_rule":{"security_group_id":%q,"direction":"ingress","protocol":%s}}`,
				group,
				more,
			)
			if d := cmp.Diff(want, c.faultMessage("POST", "/v2.0/security-group-rules", body)); d != "" {
				t.Errorf("create a rule with the protocol and ports %s (-want +got):\n%s", more, d)
			}
		})
	}
}

// An Open vSwitch agent of Neutron reads only the decimal numbers from 0 to 255: it fails for every port of
// its host, again and again, if the rules of one port have the protocol +6 or 09. The program
// iptables-restore, which sets the rules of all ports of a host at once, fails because of 09, and reads 010
// as 8.
func TestSecurityGroupRule_NumberOfAProtocolIsDecimal(t *testing.T) {
	t.Parallel()
	c := open(t)
	group := c.group("numbers")
	for said, want := range map[string]string{
		`"09"`:   "9",
		`"010"`:  "10",
		`"-0"`:   "0",
		`"+6"`:   "6",
		`"0017"`: "17",
		`"255"`:  "255",
		`"01","ethertype":"IPv6","port_range_min":8`: "58",
	} {
		t.Run(said, func(t *testing.T) {
			c := c.in(t)
			rule := c.must(201, "POST", "/v2.0/security-group-rules", fmt.Sprintf(
				`{"security_group_rule":{"security_group_id":%q,"direction":"ingress","protocol":%s}}`, group, said,
			))["security_group_rule"].(object)
			if rule["protocol"] != want {
				t.Errorf("a rule with the protocol %s has the protocol %q, want %q", said, rule["protocol"], want)
			}
		})
	}
}
