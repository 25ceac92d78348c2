package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/identity"
	"berth/internal/identity/policy"
)

var (
	admin  = identity.Caller{User: "root", Project: "ops", Roles: []string{"Admin"}}
	ann    = identity.Caller{User: "ann", Project: "demo", Roles: []string{"member", "reader"}}
	system = identity.Caller{User: "root", System: true, Roles: []string{"admin"}}
	domain = identity.Caller{User: "dora"}
)

// file writes a policy file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, o policy.Options, defaults ...policy.Default) *policy.Policy {
	t.Helper()
	p, err := policy.Open(o, defaults...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRulesMeanWhatOsloPolicySays(t *testing.T) {
	t.Parallel()
	target := policy.Target{"project_id": "demo", "user_id": "ann", "shared": true, "owner": nil, "n": 7, "target.port.project_id": "demo"}
	for text, want := range map[string]bool{
		"":  true,
		"@": true, "!": false,
		"not !": true, "not @": false, "NOT !": true, "not not @": true,
		"role:member": true, "role:MEMBER": true, "role:admin": false, "role:member_": false,
		"user_id:ann": true, "user_id:%(user_id)s": true, "user_id:bob": false,
		"project_id:%(project_id)s": true, "tenant_id:%(project_id)s": true, "project_id:%(user_id)s": false,
		"project_id:%(target.port.project_id)s": true, "project_id:%(missing)s": false, "not project_id:%(missing)s": true,
		"roles:reader": true, "system_scope:all": false, "user_id:": false, "user_id:None": false,
		"'demo':%(project_id)s": true, `"demo":%(project_id)s`: true, "'other':%(project_id)s": false,
		"True:%(shared)s": true, "False:%(shared)s": false, "None:%(owner)s": true, "None:%(user_id)s": false, "7:%(n)s": true,
		"'100%':100%%": true, "'a-demo-b':a-%(project_id)s-b": true,
		"@ and !": false, "@ or !": true, "! or ! or @": true, "@ and @ and !": false,
		"@ or ! and !": true, "! and ! or @": true, "(@ or !) and !": false, "@ or (! and !)": true, "! and (! or @)": false,
		"not ! and !": false, "not (! and !)": true, "not (@ or !)": false,
		"((role:member))": true, "( role:member )": true, "(role:admin or (role:member and project_id:%(project_id)s))": true,
		"role:admin   or\n\trole:reader": true,
		"rule:ours":                      true, "rule:nobody": false, "rule:ours AND role:reader": true, "not rule:nobody": true,
	} {
		p := open(t, policy.Options{}, policy.Default{Name: "x", Check: text}, policy.Default{Name: "nobody", Check: "!"},
			policy.Default{Name: "ours", Check: "rule:member and project_id:%(project_id)s"}, policy.Default{Name: "member", Check: "role:member"})
		if got := p.Allows("x", ann, target); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestWhatIsNoRuleIsSaid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"admin":                   `"admin" is no condition`,
		":x":                      "is no condition",
		"'role:admin'":            "asks for \"'role\"",
		"role:admin or":           "ends where a condition should stand",
		"or role:admin":           `"or" is no condition`,
		"and":                     `"and" is no condition`,
		"not":                     "ends where",
		"(role:admin":             "parenthesis is not closed",
		"role:admin)":             `")" does not follow`,
		"()":                      `")" is no condition`,
		"role:admin role:reader":  `"role:reader" does not follow`,
		"http://example.org/%(x)": "%(name)s",
		"http://example.org/":     "other servers judge",
		"project_id:%(x)d":        "%(name)s",
		"project_id:%x":           "%(name)s",
		"project_id:50%":          "%(name)s",
		"project_id:%()s":         "%(name)s",
		"is_admin:True":           `asks for "is_admin"`,
		strings.Repeat("(", 100000) + "@" + strings.Repeat(")", 100000): "deeper than",
		strings.Repeat("not ", 100000) + "@":                            "deeper than",
	} {
		if _, err := policy.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestFileWinsOverDefaults(t *testing.T) {
	t.Parallel()
	defaults := []policy.Default{
		{Name: "admin_api", Check: "role:admin"},
		{Name: "list", Check: "role:service", Old: "rule:admin_api", Scopes: []policy.Scope{policy.Project}},
		{Name: "show", Check: "role:service", Old: "rule:admin_api", Scopes: []policy.Scope{policy.Project}},
	}
	for name, c := range map[string]struct {
		options    policy.Options
		list, show []bool // of admin, ann, system, domain
	}{
		"defaults":    {policy.Options{}, []bool{false, false, false, false}, []bool{false, false, false, false}},
		"old as well": {policy.Options{Old: true}, []bool{true, false, false, false}, []bool{true, false, false, false}},
		"overridden": {policy.Options{Old: true, File: file(t, "# ours\nlist: role:reader\n")},
			[]bool{false, true, false, false}, []bool{true, false, false, false}},
		"overridden name": {policy.Options{Old: true, File: file(t, `{"admin_api": "role:reader"}`)},
			[]bool{false, true, false, false}, []bool{false, true, false, false}},
		"name of the file's own": {policy.Options{File: file(t, "list: rule:people\npeople: rule:more or role:reader\nmore: '!'\nshow: ''\n")},
			[]bool{false, true, false, false}, []bool{true, true, false, false}},
		"empty file": {policy.Options{File: file(t, "")}, []bool{false, false, false, false}, []bool{false, false, false, false}},
	} {
		p := open(t, c.options, defaults...)
		for i, caller := range []identity.Caller{admin, ann, system, domain} {
			if list, show := p.Allows("list", caller, nil), p.Allows("show", caller, nil); list != c.list[i] || show != c.show[i] {
				t.Errorf("%s, caller %d: list %v, show %v", name, i, list, show)
			}
		}
		if p.Allows("unheard of", admin, nil) {
			t.Errorf("%s: a name without a rule is allowed", name)
		}
	}
}

func TestFileThatProtectsNothingIsRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"lists: role:admin":                         "lists: no operation has this name, and no rule refers to it",
		"list: rule:admins":                         "list refers to rule:admins, which does not exist",
		"list: rule:list":                           "list refers to itself",
		"list: rule:a\na: rule:b\nb: '@ or rule:a'": "a refers to itself",
		"list: [[\"role:admin\"]]":                  "lists of lists are no longer read",
		"list: true":                                "a rule is a text in quotes",
		"list: !":                                   "a rule is a text in quotes",
		"list: @":                                   "policy.yaml",
		"list: role:a\nlist: role:b":                "already defined",
		"- list":                                    "policy.yaml",
		"list: {a: b}":                              "a rule is a text in quotes",
		"list: admin":                               "is no condition",
	} {
		path := file(t, content)
		_, err := policy.Open(policy.Options{File: path}, policy.Default{Name: "list", Check: "@"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
	if _, err := policy.Open(policy.Options{File: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that is not there is no error")
	}
}

func TestChangedFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := file(t, "list: role:reader")
	p := open(t, policy.Options{File: path}, policy.Default{Name: "list", Check: "@"})
	change := func(content string) {
		t.Helper()
		next := file(t, content) // another file, as an editor leaves it
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, admins, readers bool) {
		t.Helper()
		if a, r := p.Allows("list", admin, nil), p.Allows("list", ann, nil); a != admins || r != readers {
			t.Errorf("%s: admin %v, reader %v", what, a, r)
		}
	}

	expect("at start", false, true)
	change("list: role:admin")
	expect("changed", true, false)
	change("list: nonsense")
	expect("spoilt", true, false)
	change("list: '@'")
	expect("repaired", true, true)
	change("list: role:admin")
	expect("changed again", true, false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("gone", true, false)
	change("list: role:reader")
	expect("back", false, true)
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
				t.Skip("refers to a name that is not there")
			}
			return p.Allows("x", ann, policy.Target{"project_id": "demo", "": 1})
		}
		plain := ask(text)
		if strings.Count(text, "(")+strings.Count(strings.ToLower(text), "not") > 60 {
			return // one level more may be too many
		}
		if ask("("+text+")") != plain || ask("not ("+text+")") == plain {
			t.Errorf("%q means something else in parentheses", text)
		}
	})
}
