package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/config"
	"berth/internal/contract"
	"berth/internal/identity"
	"berth/internal/server"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// pagesInOrder are the documentation pages whose commands must run in this order, because they use the
// results of the commands on earlier pages. The test runs the commands of the other pages after the commands
// of pagesInOrder.
var pagesInOrder = []string{
	"README.md",
	"docs/agents.md",
	"docs/clients.md",
	"docs/controller.md",
	"docs/temporal.md",
	"docs/operations.md",
}

// expectations lists, for a part of a command, the text that the command's output must contain. If no entry
// of expectations matches a command, the command must succeed and may have any output.
var expectations = []struct{ command, output string }{
	{`BerthStatus="DOWN" AND BerthHost`, "$PORT"},
	{`-q 'BerthWaitingFor="DHCP"'`, "$PORT"},
	{`workflow count -q`, "Total"},
	{`temporal workflow describe`, "port recipe"},
	{`temporal workflow metadata`, "waits for DHCP"},
	{`--type why`, "waits for DHCP"},
	{`temporal workflow show`, "WorkflowExecutionStarted"},
	{`temporal workflow signal`, "succeeded"},
	{`update execute`, "status:ACTIVE"},
	{`--filter state=failed`, "failed"},
	{`starter signal port/reported --entity DHCP`, "ACTIVE"},
	{`starter why port/reported`, "ACTIVE"},
	{`starter probe --ready`, ""},
}

// TestDocs_CommandsRun starts `worker --dev`, which also runs berth's demo, and then runs every command of
// every documentation page against this worker. The commands reach the worker through a proxy that compares
// each answer with the OpenAPI document of its API.
func TestDocs_CommandsRun(t *testing.T) {
	t.Parallel()
	bin, data := programs(t), servertest.DataFolder(t)
	start := func() (*servertest.Process, map[string]string) {
		cmd := exec.Command(filepath.Join(bin, "worker"), "--dev")
		cmd.Env = append(
			slices.Clip(os.Environ()),
			append([]string{"BERTH_DATA=" + data}, servertest.FreePorts...)...)
		p := servertest.StartCommand(t, cmd)
		addresses := p.Addresses(t, data)
		addresses["BERTH_URL"] = openapitest.Proxy(t, addresses["BERTH_URL"])
		if err := config.WriteAddresses(data, addresses); err != nil { // some commands read the file
			t.Fatal(err)
		}
		if !strings.Contains(p.Output(), "All checks passed in") {
			t.Fatalf("start `worker --dev`: the demo failed, want it to pass all checks:\n%s", p.Output())
		}
		return p, addresses
	}
	worker, addresses := start()
	s := newShell(t, bin, data, addresses)

	// The test pauses the sweep, because the sweep would retry the failed journal entries before the commands
	// of docs/controller.md retry these entries.
	s.run("temporal schedule toggle --schedule-id maintenance/sweep --pause --reason docs")
	for _, name := range allPages(t) {
		if prepare := preparations[name]; prepare != nil {
			prepare(s)
		}
		s.runPage(name)
	}
	if out := s.run("starter port list"); !regexp.MustCompile(`web .*ACTIVE`).MatchString(out) {
		t.Errorf(
			"run the commands of all pages: want the port web ACTIVE, but starter port list prints\n%s",
			out,
		)
	}
	s.until(`temporal workflow list -q 'BerthResource="port" AND BerthStatus="ACTIVE"'`, s.value("PORT"))
	if out := s.run("starter port show recipe"); !strings.Contains(out, "ACTIVE") {
		t.Errorf(
			"run the commands of docs/temporal.md: want the port recipe ACTIVE after both agents' reports, got\n%s",
			out,
		)
	}
	s.until(`starter journal show "$ENTRY"`, "completed")
	for _, line := range []string{"doctor", "why port/web", "journal list", "port list -o json", "lease list -o yaml"} {
		s.run("starter " + line)
	}

	worker.Stop(t, os.Interrupt)
	_, addresses = start()
	active := regexp.MustCompile(`web .*ACTIVE`)
	if out := newShell(t, bin, data, addresses).run("starter port list"); !active.MatchString(out) {
		t.Errorf(
			"stop `worker --dev` and start it again: want the port web of the first run still ACTIVE, but starter port list prints\n%s",
			out,
		)
	}
}

// preparations lists, for a documentation page, the function that creates the objects that the page's
// commands use.
var preparations = map[string]func(*shell){
	"docs/controller.md": prepareController,
	"docs/temporal.md":   prepareRecipes,
	"docs/runbooks.md":   prepareRunbooks,
}

// prepareRunbooks creates the lease that the runbooks name.
func prepareRunbooks(s *shell) {
	s.t.Helper()
	s.run("starter lease create gold --start +7d --end +8d")
}

// prepareRecipes creates a port on host cmp-1 that waits for both agents, and sets the shell variable PORT to
// the port's ID.
func prepareRecipes(s *shell) {
	s.t.Helper()
	// the heartbeats that the commands of README.md sent may be too old
	s.run(`starter agent report cmp-1 --type "Open vSwitch agent"`)
	s.run(`starter agent report net-1 --type "DHCP agent"`)
	out := s.run(
		"starter port create recipe --network blue --host cmp-1 --device-owner compute:nova --device 7f4a3c52-5e0e-4c39-9d2b-0f6d2f1f0a02 -o json",
	)
	var port struct{ ID string }
	if err := json.Unmarshal([]byte(out), &port); err != nil || port.ID == "" {
		s.t.Fatalf("create the port recipe: error %v, output %s; want the port's ID", err, out)
	}
	s.set("PORT", port.ID)
	s.until(`temporal workflow list -q 'BerthWaitingFor="L2"'`, contract.PortID(port.ID))
	s.until(`temporal workflow list -q 'BerthWaitingFor="DHCP"'`, contract.PortID(port.ID))
}

// prepareController makes two journal entries fail, sets the shell variables ENTRY and STUCK to the sequence
// numbers of these entries, and removes the injected faults of the OpenDaylight stub. prepareController also
// changes objects directly in the stub, so that an audit finds differences.
func prepareController(s *shell) {
	s.t.Helper()
	s.control(http.MethodPost, "/_control/faults",
		`{"method": "POST", "type": "network", "status": 400, "times": 1000}`)
	for _, name := range []string{"refused", "stuck"} {
		s.run("starter network create " + name)
	}
	var failed []struct {
		Seq  int64
		Name string
	}
	s.await("two journal entries have failed", func() string {
		out, _ := s.try("starter journal list --filter state=failed -o json")
		if json.Unmarshal([]byte(out), &failed) != nil || len(failed) < 2 {
			return out
		}
		return ""
	})
	for _, e := range failed {
		s.set(map[string]string{"refused": "ENTRY", "stuck": "STUCK"}[e.Name], fmt.Sprint(e.Seq))
	}
	s.control(http.MethodDelete, "/_control/faults", "")
	s.control(http.MethodPost, "/_control/change", `{"share": 0.5, "seed": 7}`)
}

// control sends a control request to the stub of OpenDaylight, for example to inject a fault.
func (s *shell) control(method, path, body string) {
	s.t.Helper()
	u, err := url.Parse(s.value("BERTH_ODL_URL"))
	if err != nil {
		s.t.Fatal(err)
	}
	u.Path = path
	r, err := http.NewRequestWithContext(s.t.Context(), method, u.String(), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		s.t.Fatalf(
			"send the control request %s %s to the stub of OpenDaylight: got the status %s, want 2xx",
			method, path, answer.Status,
		)
	}
}

// runPage runs the code blocks of a page: blocks with the language `sh` in the shell, blocks with `sql` on
// the database.
func (s *shell) runPage(name string) {
	s.t.Helper()
	for _, b := range blocks(s.t, name) {
		switch b.language {
		case "sql":
			storetest.Exec(s.t, s.value("BERTH_DATABASE_URL"), b.text)
		case "sh":
			for _, command := range b.commands() {
				s.runDocumented(name, command, b.marked)
			}
		}
	}
}

// runDocumented runs one command of a page and checks the output of the command against the entries in
// expectations.
func (s *shell) runDocumented(page, command string, marked bool) {
	s.t.Helper()
	reason := notRunBecause(command)
	if marked != (reason != "") {
		s.t.Errorf(
			"page %s, command %q: the page marks the command as not run: %v; reason in notRun: %q; want a reason if and only if the page marks the command",
			page, command, marked, reason,
		)
		return
	}
	if strings.HasPrefix(command, "make ") {
		s.checkTarget(page, command)
	}
	if marked {
		return
	}
	out := s.run(command)
	for _, e := range expectations {
		if want := s.expand(e.output); strings.Contains(command, e.command) && !strings.Contains(out, want) {
			s.t.Errorf("page %s, output of the command %s: want a text that contains %q, got\n%s",
				page, command, want, out)
		}
	}
	if strings.Contains(command, "odl repair --dry-run") {
		s.set("PLAN", s.newestAudit())
	}
}

// newestAudit returns the number of the newest audit. A repair repairs the findings of the audit that
// newestAudit returns.
func (s *shell) newestAudit() string {
	s.t.Helper()
	var runs []struct {
		ID   int64
		Kind string
	}
	out := s.run("starter odl list -o json")
	if err := json.Unmarshal([]byte(out), &runs); err != nil {
		s.t.Fatalf("decode the list of full syncs, recoveries, audits and repairs: %v: %s", err, out)
	}
	newest := int64(0)
	for _, r := range runs {
		if r.Kind == "audit" {
			newest = max(newest, r.ID)
		}
	}
	return fmt.Sprint(newest)
}

// TestDocs_SettingsExist checks that berth has every setting that a documentation page names. The page
// docs/settings.md also has a test in internal/config.
func TestDocs_SettingsExist(t *testing.T) {
	t.Parallel()
	known := append(config.Variables(), config.SecretFileVariables()...)
	for _, page := range allPages(t) {
		for _, name := range regexp.MustCompile(`\b(?:BERTH|OS)_[A-Z][A-Z_]*[A-Z]\b`).FindAllString(readPage(t, page), -1) {
			if !slices.Contains(known, name) && !slices.Contains(clientSettings, name) {
				t.Errorf(
					"page %s names the setting %s, which does not exist; want only existing settings",
					page,
					name,
				)
			}
		}
	}
}

// clientSettings are the environment variables in the documentation that the OpenStack clients read, and not
// berth.
var clientSettings = []string{"OS_AUTH_TYPE"}

func TestDocs_PolicyExampleIsUnderstood(t *testing.T) {
	t.Parallel()
	all := blocks(t, "docs/clients.md")
	i := slices.IndexFunc(all, func(b codeBlock) bool { return b.language == "yaml" })
	if i < 0 {
		t.Fatal("docs/clients.md has no YAML example of a policy file, want one")
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(all[i].text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{"BERTH_POLICY_FILE=" + path, "BERTH_ENFORCE_NEW_DEFAULTS=off"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := server.OpenPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	admin, member := identity.Caller{
		Project: "p",
		Roles:   []string{"admin"},
	}, identity.Caller{
		Project: "p",
		Roles:   []string{"member"},
	}
	for _, c := range []struct {
		rule    string
		caller  identity.Caller
		allowed bool
	}{
		{"placement:traits:list", member, true},
		{"placement:reshaper:reshape", admin, true},
		{"placement:traits:delete", admin, false},
		{"placement:traits:update", member, false},
	} {
		if rules.Allows(c.rule, c.caller, nil) != c.allowed {
			t.Errorf("policy rule %s for a caller with the roles %v: want allowed=%v, got the opposite",
				c.rule, c.caller.Roles, c.allowed)
		}
	}

	cfg.Policy.File = filepath.Join(t.TempDir(), "none")
	if _, err := server.OpenPolicy(cfg); err == nil || !strings.Contains(err.Error(), "BERTH_POLICY_FILE") {
		t.Errorf(
			"open a policy file that does not exist: got error %v, want an error that names BERTH_POLICY_FILE",
			err,
		)
	}
}
