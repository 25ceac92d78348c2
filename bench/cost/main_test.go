package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
	"berth/bench/harness"
)

func TestMain(m *testing.M) { benchtest.Main(m, main) }

func TestRun_ShortRunMeasuresEveryOperationAndLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	out, printed := benchtest.Run(
		t, run,
		"-dev-server",
		"-window=300ms",
		"-warmup=100ms",
		"-clients=4",
		"-rounds=2",
		"-limits=1",
		"-quiet=0",
	)

	if left, err := filepath.Glob(harness.CgroupRoot + "/*/berth-cost-*"); err != nil || len(left) > 0 {
		t.Errorf("cgroups after the run: got %v, error %v; want none", left, err)
	}
	r := benchtest.Read[report](t, out, section)
	var got, want []string
	for _, op := range operations {
		want = append(want, op.figure)
	}
	for _, one := range r.Results {
		got = append(got, one.Name)
		checkResult(t, r, one)
		if !strings.Contains(printed, "\n"+one.Name+" ") {
			t.Errorf("the printed results: want a line for %s, got:\n%s", one.Name, printed)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("operations in the results (-want +got):\n%s", d)
	}
}

// checkResult checks that a result has a prediction from its own costs for each limit, if this machine allows
// limits.
func checkResult(t *testing.T, r report, one result) {
	t.Helper()
	wantChecks := 1
	if r.Unlimited != "" {
		wantChecks = 0
	}
	if len(one.Checks) != wantChecks {
		t.Errorf("%s: got %d limits, want %d: %s", one.Name, len(one.Checks), wantChecks, r.Unlimited)
	}
	if len(one.Reference) != 2 {
		t.Errorf("%s: got %d measurements of its costs, want one for each of the 2 rounds", one.Name, len(one.Reference))
	}
	for _, c := range one.Checks {
		if c.Lowest > c.Rate || c.Highest < c.Rate {
			t.Errorf("%s, limit of %g cores: got %g/s in all rounds, want a rate between those of the rounds, %g/s to %g/s",
				one.Name, c.Cores, c.Rate, c.Lowest, c.Highest)
		}
		if want := r.model(one).rateOnMachine(c.Cores, float64(r.Machine.Cores)); c.Predicted != want {
			t.Errorf("%s, limit of %g cores: predicted %g/s, want %g/s from the costs", one.Name, c.Cores, c.Predicted, want)
		}
	}
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	benchtest.CheckUsage(
		t, run,
		[]string{"-window=0s"},
		[]string{"-warmup=-1s"},
		[]string{"-clients=0"},
		[]string{"-quiet=-1s"},
		[]string{"-rounds=0"},
		[]string{"-reference=0"},
		[]string{"-limits="},
		[]string{"-limits=1,0"},
		[]string{"-limits=all"},
		[]string{"-fast"},
		[]string{"ports"},
	)
}
