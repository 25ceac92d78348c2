package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// monitoring is the folder with the alert rules and the dashboard.
const monitoring = "monitoring"

// alertRule is an alert of alerts.yaml.
type alertRule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// readAlerts returns the alerts of alerts.yaml.
func readAlerts(t *testing.T) []alertRule {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(monitoring, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	var all []alertRule
	for _, g := range file.Groups {
		for _, rule := range g.Rules {
			if rule.Alert != "" { // not a recording rule
				all = append(all, rule)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("alerts.yaml has no alerts, want some")
	}
	return all
}

// promtool runs promtool in the folder of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "promtool", args...)
	c.Dir = monitoring
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v; it prints\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlerts_RulesAreValidAndFireAsTheirUnitTestsSay(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "alerts.yaml")
	promtool(t, "test", "rules", "alerts_test.yaml")
}

func TestAlerts_EachHasAUnitTestASeverityAndARunbook(t *testing.T) {
	t.Parallel()
	runbooks, err := os.ReadFile("../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(monitoring, "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(runbooks), "\n## ")[1:]
	content := map[string]string{}
	for _, s := range sections {
		title, text, _ := strings.Cut(s, "\n")
		content[title] = text
	}
	for _, a := range readAlerts(t) {
		if !strings.Contains(string(raw), "  - name: "+a.Alert+"\n") {
			t.Errorf(
				"alert %s: alerts_test.yaml has no test of this name, want one in which the alert fires",
				a.Alert,
			)
		}
		if s := a.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("alert %s: got the severity %q, want page or ticket", a.Alert, s)
		}
		if want := "docs/runbooks.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("alert %s: got the runbook_url %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(content[a.Alert], "```sh\n") {
			t.Errorf("alert %s: docs/runbooks.md has no section %s with a command, want one",
				a.Alert, a.Alert)
		}
		delete(content, a.Alert)
	}
	for title := range content {
		t.Errorf("docs/runbooks.md has the section %s, but alerts.yaml has no alert of this name", title)
	}
}

// TestDashboard_QueriesAreValid checks the queries of the dashboard as the expressions of recording rules.
func TestDashboard_QueriesAreValid(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: another panel has the ID %d too", p.Title, p.ID)
		}
		ids[p.ID] = true
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("panel %q has no query, want at least one", p.Title)
		}
		for i, q := range p.Targets {
			rules += fmt.Sprintf("      - record: panel:%d:%d\n        expr: %s\n",
				p.ID, i, strings.ReplaceAll(q.Expr, "$__rate_interval", "1m"))
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
