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

var update = flag.Bool("update", false, "write the tables of docs/policy.md and the public names in testdata")

const (
	policyPage   = "../../docs/policy.md"
	policyMarker = "-run PolicyPage -update. Do not edit. -->\n"
)

// TestPolicyPage_EqualsRules fails when docs/policy.md has other rules than the APIs. To update
// docs/policy.md, run `go test ./internal/server -run PolicyPage -update`.
func TestPolicyPage_EqualsRules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(page), policyMarker)
	if !found {
		t.Fatalf("docs/policy.md: no line with %q", policyMarker)
	}
	rules, err := server.OpenPolicies(config.Config{Policy: config.Policy{EnforceNewDefaults: true}})
	if err != nil {
		t.Fatal(err)
	}
	want := policyTable("Placement", rules.Placement) +
		policyTable("Networking", rules.Networking) +
		policyTable("Reservation", rules.Reservation)
	if *update {
		if err := os.WriteFile(policyPage, []byte(head+policyMarker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf(
			"docs/policy.md: got other rules than the APIs have; to update the page, run go test ./internal/server -run PolicyPage -update (-page +rules):\n%s",
			d,
		)
	}
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
