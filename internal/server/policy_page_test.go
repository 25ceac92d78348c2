package server_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
	"berth/internal/identity/policy"
	"berth/internal/server"
)

var update = flag.Bool("update", false, "write the tables of docs/policy.md and docs/metrics.md, and the public names in testdata")

// checkGeneratedPage compares the generated end of a page of the documentation with the text that it must
// have. With -update, checkGeneratedPage writes the text instead. The parameter `test` selects the test of
// the page.
func checkGeneratedPage(t *testing.T, page, test, want string) {
	t.Helper()
	path, marker := "../../"+page, "-run "+test+" -update. Do not edit. -->\n"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(raw), marker)
	if !found {
		t.Fatalf("%s: no line with %q", page, marker)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+marker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("%s differs from the code; to update the page, run go test ./internal/server -run %s -update (-page +code):\n%s",
			page, test, d)
	}
}

// TestPolicyPage_EqualsRules fails when docs/policy.md has other rules than the APIs. To update
// docs/policy.md, run `go test ./internal/server -run PolicyPage -update`.
func TestPolicyPage_EqualsRules(t *testing.T) {
	t.Parallel()
	rules, err := server.OpenPolicies(config.Config{Policy: config.Policy{EnforceNewDefaults: true}})
	if err != nil {
		t.Fatal(err)
	}
	checkGeneratedPage(t, "docs/policy.md", "PolicyPage", policyTable("Placement", rules.Placement)+
		policyTable("Networking", rules.Networking)+
		policyTable("Reservation", rules.Reservation))
}

// policyTable renders the rules of an API.
func policyTable(title string, p *policy.Policy) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n| Rule | Default | Scopes | Decides |\n|---|---|---|---|\n", title)
	for _, e := range p.Entries() {
		scopes := make([]string, len(e.Scopes))
		for i, s := range e.Scopes {
			scopes[i] = s.String()
		}
		decides := "used by other rules"
		if len(e.Guards) > 0 {
			decides = "`" + strings.Join(e.Guards, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", e.Name, e.Check, strings.Join(scopes, ", "), decides)
	}
	return b.String()
}
