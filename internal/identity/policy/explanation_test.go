package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
	"berth/internal/identity/policy"
)

func TestExplain_NamesTheConditionThatFails(t *testing.T) {
	t.Parallel()
	p := open(
		t,
		policy.Options{},
		policy.Default{Name: "admin_only", Check: "role:admin"},
		policy.Default{Name: "shared", Check: "field:networks:shared=True"},
		policy.Default{
			Name:  "get_network",
			Check: "rule:admin_only or (role:reader and project_id:%(project_id)s) or not rule:shared",
		},
		policy.Default{Name: "list", Check: "@", Scopes: []policy.Scope{policy.Project}},
	)
	for name, c := range map[string]struct {
		rule   string
		caller identity.Caller
		target policy.Target
		want   policy.Explanation
	}{
		"a project's reader and another project's network": {"get_network", ann, policy.Target{"project_id": "other", "shared": true}, policy.Explanation{
			Check: "rule:admin_only or (role:reader and project_id:%(project_id)s) or not rule:shared", Parts: []policy.Explanation{
				{Check: "rule:admin_only", Parts: []policy.Explanation{{Check: "role:admin", Reason: "the caller has the roles member, reader"}}},
				{Check: "role:reader and project_id:%(project_id)s", Parts: []policy.Explanation{
					{Check: "role:reader", Allowed: true, Reason: "the caller has the roles member, reader"},
					{Check: "project_id:%(project_id)s", Reason: "the caller has the project_id demo, the target's value is 'other'"}}},
				{Check: "not rule:shared", Parts: []policy.Explanation{{Check: "rule:shared", Allowed: true, Parts: []policy.Explanation{
					{Check: "field:networks:shared=True", Allowed: true, Reason: "the target's shared is 'True'"}}}}}}}},
		"a target without attributes": {"shared", ann, nil, policy.Explanation{Check: "field:networks:shared=True", Reason: "the target has no shared"}},
		"the scope of a token": {"list", domain, nil, policy.Explanation{Check: "scope of the token: project scope, and @", Parts: []policy.Explanation{
			{Check: "scope of the token: project scope", Reason: "the token has neither project scope nor system scope"},
			{Check: "@", Allowed: true, Reason: "@ allows every request"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := p.Explain(c.rule, c.caller, c.target)
			if diff := cmp.Diff(c.want, got); diff != "" || !known {
				t.Errorf("explain %s: known is %v, the explanation differs (-want +got):\n%s",
					c.rule, known, diff)
			}
			if allowed := p.Allows(c.rule, c.caller, c.target); allowed != got.Allowed {
				t.Errorf("explain %s: the explanation says allowed=%v, the decision is %v",
					c.rule, got.Allowed, allowed)
			}
		})
	}
	if _, known := p.Explain("nothing", ann, nil); known {
		t.Error("explain a rule that does not exist: got an explanation, want none")
	}
}

func TestDecideEarly_DependsOnlyIfUnknownAttributesMatter(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]policy.Decision{
		"role:member":               policy.Allowed,
		"role:admin":                policy.Denied,
		"project_id:%(project_id)s": policy.Depends,
		"role:admin and project_id:%(project_id)s":               policy.Denied,
		"role:member and project_id:%(project_id)s":              policy.Depends,
		"role:member or project_id:%(project_id)s":               policy.Allowed,
		"not project_id:%(project_id)s":                          policy.Depends,
		"not (role:admin and project_id:%(project_id)s)":         policy.Allowed,
		"user_id:%(owner)s":                                      policy.Denied,
		"field:networks:shared=True":                             policy.Depends,
		"field:networks:external=True":                           policy.Denied,
		"'x':%(unknown)s or system_scope:%(unknown)s":            policy.Depends,
		"system_scope:%(unknown)s":                               policy.Denied,
		"role:%(unknown)s":                                       policy.Depends,
		"user_id:%(owner)s or (role:member and not user_id:ann)": policy.Denied,
	} {
		t.Run(check, func(t *testing.T) {
			p := open(t, policy.Options{}, policy.Default{Name: "x", Check: check})
			if got := p.Rules().DecideEarly("x", ann, policy.Target{"owner": "bob", "external": false}); got != want {
				t.Errorf("decide the rule %q early: got %d, want %d", check, got, want)
			}
		})
	}
}

func TestField_ComparesTheTargetsAttribute(t *testing.T) {
	t.Parallel()
	target := policy.Target{
		"shared":          true,
		"router:external": false,
		"device_owner":    "network:dhcp",
		"name":            "",
		"none":            nil,
		"network:mtu":     1500,
	}
	for check, want := range map[string]bool{
		"field:networks:shared=True":           true,
		"field:networks:shared=False":          false,
		"field:networks:router:external=False": true,
		"field:networks:router:external=True":  false,
		"field:port:device_owner=~^network:":   true,
		"field:port:device_owner=~work":        false,
		"field:port:device_owner=~netw":        true,
		"field:port:device_owner=network:dhcp": true,
		"field:port:name=":                     true,
		"field:port:none=None":                 false,
		"field:networks:mtu=1500":              true,
		"field:subnets:mtu=1500":               false,
		"not field:networks:missing=True":      true,
	} {
		t.Run(check, func(t *testing.T) {
			p := open(t, policy.Options{}, policy.Default{Name: "x", Check: check})
			if got := p.Allows("x", ann, target); got != want {
				t.Errorf("rule %q: got the verdict %v, want %v", check, got, want)
			}
		})
	}
}
