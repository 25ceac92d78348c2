package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/identity/policy"
)

func TestParse_RulesMeanTheSameAsInOsloPolicy(t *testing.T) {
	t.Parallel()
	target := policy.Target{
		"project_id":             "demo",
		"user_id":                "ann",
		"shared":                 true,
		"owner":                  nil,
		"n":                      7,
		"target.port.project_id": "demo",
	}
	for text, want := range map[string]bool{
		"":                                      true,
		"@":                                     true,
		"!":                                     false,
		"not !":                                 true,
		"not @":                                 false,
		"NOT !":                                 true,
		"not not @":                             true,
		"role:member":                           true,
		"role:MEMBER":                           true,
		"role:admin":                            false,
		"role:member_":                          false,
		"user_id:ann":                           true,
		"user_id:%(user_id)s":                   true,
		"user_id:bob":                           false,
		"project_id:%(project_id)s":             true,
		"tenant_id:%(project_id)s":              true,
		"project_id:%(user_id)s":                false,
		"project_id:%(target.port.project_id)s": true,
		"project_id:%(missing)s":                false,
		"not project_id:%(missing)s":            true,
		"roles:reader":                          true,
		"system_scope:all":                      false,
		"user_id:":                              false,
		"user_id:None":                          false,
		"'demo':%(project_id)s":                 true,
		`"demo":%(project_id)s`:                 true,
		"'other':%(project_id)s":                false,
		"True:%(shared)s":                       true,
		"False:%(shared)s":                      false,
		"None:%(owner)s":                        true,
		"None:%(user_id)s":                      false,
		"7:%(n)s":                               true,
		"'100%':100%%":                          true,
		"'a-demo-b':a-%(project_id)s-b":         true,
		"@ and !":                               false,
		"@ or !":                                true,
		"! or ! or @":                           true,
		"@ and @ and !":                         false,
		"@ or ! and !":                          true,
		"! and ! or @":                          true,
		"(@ or !) and !":                        false,
		"@ or (! and !)":                        true,
		"! and (! or @)":                        false,
		"not ! and !":                           false,
		"not (! and !)":                         true,
		"not (@ or !)":                          false,
		"((role:member))":                       true,
		"( role:member )":                       true,
		"(role:admin or (role:member and project_id:%(project_id)s))": true,
		"role:admin   or\n\trole:reader":                              true,
		"rule:ours":                                                   true,
		"rule:nobody":                                                 false,
		"rule:ours AND role:reader":                                   true,
		"not rule:nobody":                                             true,
	} {
		t.Run(fmt.Sprintf("%.60q", text), func(t *testing.T) {
			p := open(
				t,
				policy.Options{},
				policy.Default{Name: "x", Check: text},
				policy.Default{Name: "nobody", Check: "!"},
				policy.Default{
					Name:  "ours",
					Check: "rule:member and project_id:%(project_id)s",
				},
				policy.Default{Name: "member", Check: "role:member"},
			)
			if got := p.Allows("x", ann, target); got != want {
				t.Errorf("rule %q: got the verdict %v, want %v", text, got, want)
			}
		})
	}
}

func TestParse_InvalidRuleIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"admin":                   `"admin" is not a condition`,
		":x":                      "is not a condition",
		"'role:admin'":            "unknown kind \"'role\"",
		"role:admin or":           "ends where a condition is expected",
		"or role:admin":           `"or" is not a condition`,
		"and":                     `"and" is not a condition`,
		"not":                     "ends where",
		"(role:admin":             "closing parenthesis is missing",
		"role:admin)":             `unexpected ")"`,
		"()":                      `")" is not a condition`,
		"role:admin role:reader":  `unexpected "role:reader"`,
		"http://example.org/%(x)": "%(name)s",
		"http://example.org/":     "call an HTTP server",
		"project_id:%(x)d":        "%(name)s",
		"project_id:%x":           "%(name)s",
		"project_id:50%":          "%(name)s",
		"project_id:%()s":         "%(name)s",
		"is_admin:True":           `unknown kind "is_admin"`,
		"field:networks:shared":   "write field:RESOURCE:ATTRIBUTE=VALUE",
		"field:shared=True":       "write field:RESOURCE:ATTRIBUTE=VALUE",
		"field:port:name=~(":      "error parsing regexp",
		strings.Repeat("(", 100000) + "@" + strings.Repeat(")", 100000): "deeper than",
		strings.Repeat("not ", 100000) + "@":                            "deeper than",
	} {
		t.Run(fmt.Sprintf("%.60q", text), func(t *testing.T) {
			if _, err := policy.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("parse %.60q: got error %v, want one with %q", text, err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "@", "role:admin or (role:reader and not project_id:%(project_id)s)", "'a':%(b)s%%", "rule:x and", "((!)", "not not True:%(x)s", "a:b:c", "\"%(", "role:%()s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := policy.Parse(text); err != nil || strings.TrimSpace(text) == "" {
			return
		}
		ask := func(check string) bool {
			p, err := policy.Open(policy.Options{}, policy.Default{Name: "x", Check: check})
			if err != nil {
				t.Skip("the rule refers to an unknown rule")
			}
			return p.Allows("x", ann, policy.Target{"project_id": "demo", "": 1})
		}
		plain := ask(text)
		if strings.Count(text, "(")+strings.Count(strings.ToLower(text), "not") > 60 {
			return // one more level may exceed maxNesting
		}
		if ask("("+text+")") != plain || ask("not ("+text+")") == plain {
			t.Errorf(
				"rule %q: want the same verdict in parentheses and the opposite verdict after the word not",
				text,
			)
		}
	})
}
