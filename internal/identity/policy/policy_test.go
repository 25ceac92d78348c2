package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
	"berth/internal/identity/policy"
)

var (
	admin  = identity.Caller{User: "root", Project: "ops", Roles: []string{"Admin"}}
	ann    = identity.Caller{User: "ann", Project: "demo", Roles: []string{"member", "reader"}}
	system = identity.Caller{User: "root", System: true, Roles: []string{"admin"}}
	domain = identity.Caller{User: "dora"}
)

// writePolicy writes a policy file with the given content and returns the path of the file.
func writePolicy(t *testing.T, content string) string {
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

func TestPolicy_FileReplacesDefaults(t *testing.T) {
	t.Parallel()
	defaults := []policy.Default{
		{Name: "admin_api", Check: "role:admin"},
		{
			Name:   "list",
			Check:  "role:service",
			Old:    "rule:admin_api",
			Scopes: []policy.Scope{policy.Project},
		},
		{
			Name:   "show",
			Check:  "role:service",
			Old:    "rule:admin_api",
			Scopes: []policy.Scope{policy.Project},
		},
	}
	for name, c := range map[string]struct {
		options    policy.Options
		list, show []bool // of admin, ann, system, domain
	}{
		"defaults":    {policy.Options{}, []bool{false, false, false, false}, []bool{false, false, false, false}},
		"old as well": {policy.Options{Old: true}, []bool{true, false, false, false}, []bool{true, false, false, false}},
		"overridden": {policy.Options{Old: true, File: writePolicy(t, "# a comment\nlist: role:reader\n")},
			[]bool{false, true, false, false}, []bool{true, false, false, false}},
		"overridden name": {policy.Options{Old: true, File: writePolicy(t, `{"admin_api": "role:reader"}`)},
			[]bool{false, true, false, false}, []bool{false, true, false, false}},
		"rule that only the file defines": {policy.Options{File: writePolicy(t, "list: rule:readers\nreaders: rule:more or role:reader\nmore: '!'\nshow: ''\n")},
			[]bool{false, true, false, false}, []bool{true, true, false, false}},
		"empty file": {policy.Options{File: writePolicy(t, "")}, []bool{false, false, false, false}, []bool{false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, c.options, defaults...)
			for i, caller := range []identity.Caller{admin, ann, system, domain} {
				if list, show := p.Allows("list", caller, nil), p.Allows("show", caller, nil); list != c.list[i] ||
					show != c.show[i] {
					t.Errorf(
						"%s, caller %d: got the verdicts %v for list and %v for show, want %v and %v",
						name, i, list, show, c.list[i], c.show[i],
					)
				}
			}
			if p.Allows("unknown operation", admin, nil) {
				t.Errorf("policy %s: an operation without a rule is allowed, want a refusal", name)
			}
		})
	}
}

func TestPolicy_FileWithoutEffectIsRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"lists: role:admin":                         "lists: no operation has this name, and no rule refers to it",
		"list: rule:admins":                         "list refers to rule:admins, which does not exist",
		"list: rule:list":                           "list refers to itself",
		"list: rule:a\na: rule:b\nb: '@ or rule:a'": "a refers to itself",
		"list: [[\"role:admin\"]]":                  "lists of lists are not supported",
		"list: true":                                "a rule must be a quoted string",
		"list: !":                                   "a rule must be a quoted string",
		"list: @":                                   "policy.yaml",
		"list: role:a\nlist: role:b":                "already defined",
		"- list":                                    "policy.yaml",
		"list: {a: b}":                              "a rule must be a quoted string",
		"list: admin":                               "is not a condition",
	} {
		t.Run(content, func(t *testing.T) {
			path := writePolicy(t, content)
			_, err := policy.Open(policy.Options{File: path}, policy.Default{Name: "list", Check: "@"})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("open the policy file %q: got error %v, want one with %q", content, err, want)
			}
		})
	}
	if _, err := policy.Open(policy.Options{File: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("open a policy file that does not exist: got no error, want one")
	}
}

func TestPolicy_ErrorNamesTheLine(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"# comment\n\nlist: admin":             "policy.yaml: line 3: list: ",
		"a: role:x\n\"list\": '@'":             "policy.yaml: line 1: a: no operation has this name",
		"list: rule:a\na: rule:b":              "policy.yaml: line 2: a refers to rule:b",
		"list: rule:a\na: rule:list":           "policy.yaml: line 2: a refers to itself",
		"\nlist: 1":                            "policy.yaml: line 2: list: a rule must be a quoted string",
		"{\n\"list\":\n  [[\"role:admin\"]]}":  "policy.yaml: line 2: list: a rule must be a string",
		"\n\nlist: user_id:%(user_id)s":        "policy.yaml: line 3: list: rule:list compares the attribute user_id",
		"list: role:admin\n\tshow: role:admin": "line 2",
	} {
		t.Run(content, func(t *testing.T) {
			_, err := policy.Open(policy.Options{File: writePolicy(t, content)},
				policy.Default{Name: "list", Check: "@", Attributes: []string{"project_id"}})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("open the policy file %q: got error %v, want one with %q", content, err, want)
			}
		})
	}
}

func TestPolicy_ComparisonWithAnAttributeThatTheTargetLacksIsRefused(t *testing.T) {
	t.Parallel()
	defaults := []policy.Default{
		{Name: "owner", Check: "project_id:%(project_id)s"},
		{
			Name:       "get",
			Check:      "rule:owner or field:networks:shared=True",
			Attributes: []string{"project_id", "network:shared"},
		},
		{Name: "create", Check: "rule:owner", Attributes: []string{"project_id"}},
		{Name: "other", Check: "rule:owner"},
	}
	for content, want := range map[string]string{
		"create: user_id:%(user_id)s":             "create: rule:create compares the attribute user_id, but the target of create has only project_id",
		"owner: tenant_id:%(tenant_id)s":          "get: rule:owner compares the attribute tenant_id, but the target of get has only project_id, network:shared",
		"create: field:networks:shared=True":      "create: rule:create compares the attribute shared",
		"create: \"'a':%(project_id)s-%(name)s\"": "compares the attribute name",
		"other: user_id:%(user_id)s":              "",
		"get: not field:networks:shared=True":     "",
	} {
		t.Run(content, func(t *testing.T) {
			_, err := policy.Open(policy.Options{File: writePolicy(t, content)}, defaults...)
			if want == "" && err != nil ||
				want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf(
					"open the policy file %q: got error %v, want one with %q (none if it is empty)",
					content, err, want,
				)
			}
		})
	}
}

func TestPolicy_EntriesShowDefaultsAndTheFile(t *testing.T) {
	t.Parallel()
	p := open(
		t,
		policy.Options{File: writePolicy(t, "b: rule:mine\nmine: role:x and ( not role:y or '1':%(n)s )\n")},
		policy.Default{
			Name:   "b",
			Check:  "role:admin",
			Guards: []string{"GET /b"},
		},
		policy.Default{Name: "a", Check: "rule:b"},
		policy.Default{Name: "c", Check: ""},
	)
	want := []policy.Entry{
		{
			Default:  policy.Default{Name: "b", Check: "role:admin", Guards: []string{"GET /b"}},
			Present:  "rule:mine",
			FromFile: true,
		},
		{Default: policy.Default{Name: "a", Check: "rule:b"}, Present: "rule:b"},
		{Default: policy.Default{Name: "c"}, Present: "@"},
		{
			Default:    policy.Default{Name: "mine"},
			Present:    "role:x and (not role:y or '1':%(n)s)",
			FromFile:   true,
			OnlyInFile: true,
		},
	}
	if diff := cmp.Diff(want, p.Entries()); diff != "" {
		t.Errorf("the entries differ (-want +got):\n%s", diff)
	}
	for name, overridden := range map[string]bool{
		"a":    true,
		"b":    true,
		"c":    false,
		"mine": true,
	} {
		if got := p.Rules().Overridden(name); got != overridden {
			t.Errorf("the file changes the rule %s: got %v, want %v", name, got, overridden)
		}
	}
}

func TestPolicy_ChangedFileIsReloaded(t *testing.T) {
	t.Parallel()
	path := writePolicy(t, "list: role:reader")
	p := open(t, policy.Options{File: path}, policy.Default{Name: "list", Check: "@"})
	change := func(content string) {
		t.Helper()
		next := writePolicy(t, content) // replaces the file, as editors do
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, admins, readers bool) {
		t.Helper()
		if a, r := p.Allows("list", admin, nil), p.Allows("list", ann, nil); a != admins || r != readers {
			t.Errorf("policy file %s: admin is allowed: %v, reader is allowed: %v; want %v and %v",
				what, a, r, admins, readers)
		}
	}

	expect("at start", false, true)
	change("list: role:admin")
	expect("changed", true, false)
	change("list: nonsense")
	expect("invalid", true, false)
	change("list: '@'")
	expect("repaired", true, true)
	change("list: role:admin")
	expect("changed again", true, false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("removed", true, false)
	change("list: role:reader")
	expect("created again", false, true)
}
