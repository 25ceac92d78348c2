package kills

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"berth/internal/torture/harness"
)

// TestRollingUpgrade_NothingLostThereAndBack starts with the programs of the folder BERTH_TEST_PREVIOUS, an
// earlier version of berth, migrates the database to this version under load, replaces the processes one
// after another, and then returns to the earlier version. Between these steps, both versions run side by
// side, and processes are killed. `make upgrade-test` builds the earlier version. Without
// BERTH_TEST_PREVIOUS, this version replaces itself.
func TestRollingUpgrade_NothingLostThereAndBack(t *testing.T) {
	t.Parallel()
	o := harness.ReadRunOptions(t)
	current := harness.CurrentPrograms(t)
	previous := cmp.Or(os.Getenv("BERTH_TEST_PREVIOUS"), current)
	logVersion(t, "from", previous)
	logVersion(t, "to", current)
	d := harness.NewRandomDeployment(t, previous, "api", "relay,temporal", "rpc", "api", "relay,temporal")
	half := len(d.Processes) / 2
	stop := d.RunClients(o)

	kills := d.KillWhile(o, 0)
	harness.MigrateWith(t, current, d.Postgres.URL)
	for i, step := range []struct {
		processes []*harness.BerthProcess
		programs  string
	}{
		{d.Processes[:half], current},
		{d.Processes[half:], current},
		{d.Processes[half:], previous},
		{d.Processes[:half], previous},
	} {
		for _, p := range step.processes {
			p.Replace(step.programs)
		}
		kills += d.KillWhile(o, uint64(i)+1)
	}

	d.CheckAfterFaults(o, map[string]int{"process killed": kills}, stop)
	d.CheckServerErrors()
}

func logVersion(t *testing.T, word, programs string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(programs, "worker"), "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("version of the programs in %s: %v\n%s", programs, err, out)
	}
	t.Logf("%s: %s", word, out)
}
