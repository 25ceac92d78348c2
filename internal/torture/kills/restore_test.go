package kills

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// runbook runs commands of docs/operations.md with the databases of a deployment.
type runbook struct {
	*ownTemporal
	commands []string // all commands of the sections "Restore" and "Backup"
	folder   string   // of the backups
	binaries string   // folder of PostgreSQL's programs
}

func newRunbook(t *testing.T) runbook {
	t.Helper()
	binaries, err := devstack.PostgresBinaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Restore\n")
	text, _, _ = strings.Cut(text, "\n## Retention\n")
	r := runbook{newOwnTemporal(t), nil, t.TempDir(), binaries}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "pg_") || strings.HasPrefix(line, "(umask 077; pg_dump ") || strings.HasPrefix(line, "starter ") {
			r.commands = append(r.commands, line)
		}
	}
	return r
}

// run runs each command of the page that contains all of the given words. There must be one at least.
func (r runbook) run(api *servertest.Worker, words ...string) {
	r.Helper()
	executions, visibility := r.server.DatabaseURLs()
	database, _, _ := strings.Cut(r.Database, "?")
	found := false
	for _, command := range r.commands {
		if !containsAll(command, words) {
			continue
		}
		found = true
		cmd := exec.CommandContext(r.Context(), "sh", "-c", command)
		cmd.Dir = r.folder
		cmd.Env = append(os.Environ(), append(r.Settings, "DATABASE_URL="+database, "TEMPORAL_DATABASE_URL="+executions,
			"TEMPORAL_VISIBILITY_DATABASE_URL="+visibility,
			"PATH="+r.binaries+":"+filepath.Dir(servertest.Program(r.T, "starter"))+":"+os.Getenv("PATH"))...)
		if api != nil {
			cmd.Env = append(cmd.Env, "BERTH_URL="+api.URL, "BERTH_TOKEN="+api.Token)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			r.Fatalf("command of docs/operations.md: %s: %v\n%s", command, err, out)
		}
	}
	if !found {
		r.Fatalf("docs/operations.md: got no command with %q below Restore and Backup, want one", words)
	}
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// TestRestore_RunbookBringsBackAllWork makes backups of berth's and of Temporal's databases at different
// moments, and restores them as docs/operations.md says. A port is created between the two backups, and
// another one after both.
func TestRestore_RunbookBringsBackAllWork(t *testing.T) {
	t.Parallel()
	for name, backups := range map[string][2][]string{
		"berth is older":    {{"pg_dump", " \"$DATABASE_URL\""}, {"pg_dump", "TEMPORAL_"}},
		"Temporal is older": {{"pg_dump", "TEMPORAL_"}, {"pg_dump", " \"$DATABASE_URL\""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunbook(t)
			c := r.StartWorker("api,relay,temporal")
			c.AwaitReady()
			c.RegisterAgents()
			before := createWaitingPort(c)
			lease := harness.CreateLeaseOf(c, "node-1", 12*time.Hour, 24*time.Hour)
			r.AwaitMirrored()
			r.awaitOpen(contract.PortID(before), leaseWorkflow(lease))
			r.run(c, backups[0]...)
			between := createWaitingPort(c)
			r.AwaitMirrored()
			r.awaitOpen(contract.PortID(between))
			r.run(c, backups[1]...)
			after := createWaitingPort(c)
			r.awaitOpen(contract.PortID(after))

			c.Kill()
			r.server.Stop()
			begin := time.Now()
			r.run(nil, "pg_restore", " \"$DATABASE_URL\"")
			r.run(nil, "pg_restore", "TEMPORAL_")
			harness.LogTime(t, begin, "restoring three databases")
			if err := r.server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			begin = time.Now()
			c = r.StartWorker("api,relay,temporal")
			c.AwaitReady()

			kept, lost := []string{before}, []string{after}
			if name == "berth is older" {
				lost = append(lost, between)
			} else {
				kept = append(kept, between)
			}
			for _, port := range kept {
				r.awaitOpen(contract.PortID(port))
			}
			r.awaitOpen(leaseWorkflow(lease))
			for _, port := range lost {
				r.Await("the workflow of the lost port has ended", func() string {
					if notOpen(r.Deployment, r.client, contract.PortID(port)) == "" {
						return "it is open"
					}
					return ""
				})
			}
			r.Await("the gauges are zero", func() string { return strings.Join(projectionDifferences(c), ", ") })
			harness.LogTime(t, begin, "continuing all work after the restore")
			c.RegisterAgents()
			r.signalReports(kept...)
			r.AwaitActive(c, kept)
			r.AwaitNone("all journal entries are completed", servertest.UnfinishedEntries)
			r.run(c, "starter odl repair")
			r.CheckAudit(c, "the restore")
		})
	}
}
