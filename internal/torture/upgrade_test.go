package torture

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestRollingUpgrade_NothingLostThereAndBack starts with the programs of the folder BERTH_TEST_PREVIOUS, an
// earlier version of berth, migrates the database to this version under load, replaces the processes one
// after another, and then returns to the earlier version. Between these steps, both versions run side by
// side, and processes are killed. `make upgrade-test` builds the earlier version. Without
// BERTH_TEST_PREVIOUS, this version replaces itself.
func TestRollingUpgrade_NothingLostThereAndBack(t *testing.T) {
	t.Parallel()
	o := readRandomOptions(t)
	current := currentPrograms(t)
	previous := cmp.Or(os.Getenv("BERTH_TEST_PREVIOUS"), current)
	logVersion(t, "from", previous)
	logVersion(t, "to", current)
	d := newRandomDeployment(t, previous, "api", "relay,temporal", "rpc", "api", "relay,temporal")
	half := len(d.processes) / 2
	stop := d.runClients(d.ledger, o)

	kills := d.killWhile(o, 0)
	migrateWith(t, current, d.postgres.URL)
	for i, step := range []struct {
		processes []*berthProcess
		programs  string
	}{
		{d.processes[:half], current},
		{d.processes[half:], current},
		{d.processes[half:], previous},
		{d.processes[:half], previous},
	} {
		for _, p := range step.processes {
			p.replace(step.programs)
		}
		kills += d.killWhile(o, uint64(i)+1)
	}

	d.checkAfterFaults(o, map[string]int{"process killed": kills}, stop)
	if errors := d.ledger.serverErrors; len(errors) > 0 {
		t.Errorf("%d server errors, want only 503 with Retry-After; the first: %s", len(errors), errors[0])
	}
}

// killWhile kills random processes for a fifth of the duration of the run, and returns their number.
func (d *randomDeployment) killWhile(o randomOptions, part uint64) int {
	d.Helper()
	kinds := slices.DeleteFunc(slices.Clone(faultKinds), func(k faultKind) bool { return k.name != "process killed" })
	timeline := drawTimeline(o.seed+part, o.duration/5, kinds)
	return d.runFaults(timeline)["process killed"]
}

func logVersion(t *testing.T, word, programs string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(programs, "worker"), "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("version of the programs in %s: %v\n%s", programs, err, out)
	}
	t.Logf("%s: %s", word, out)
}
