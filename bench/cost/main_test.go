package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/harness"
	"berth/internal/devstack"
)

func TestMain(m *testing.M) {
	if os.Getenv(harness.MainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun_ShortRunMeasuresEveryOperationAndLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	programs, err := devstack.Programs(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := devstack.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	out := filepath.Join(t.TempDir(), "costs.json")
	var table, progress bytes.Buffer

	err = run(t.Context(), []string{
		"-dev-server",
		"-window=300ms",
		"-warmup=100ms",
		"-clients=4",
		"-limits=1",
		"-quiet=0",
		"-dir",
		dir,
		"-worker",
		filepath.Join(programs, "worker"),
		"-out",
		out,
	}, &table, &progress)

	if err != nil {
		t.Fatalf("a short run: got error %v, want none; output:\n%s", err, &progress)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("folder of temporary files after the run: got %v, error %v; want no files", left, err)
	}
	if left, err := filepath.Glob(harness.CgroupRoot + "/*/berth-cost-*"); err != nil || len(left) > 0 {
		t.Errorf("cgroups after the run: got %v, error %v; want none", left, err)
	}
	r := readReport(t, out)
	var got, want []string
	for _, op := range operations {
		want = append(want, op.figure)
	}
	for _, one := range r.Results {
		got = append(got, one.Name)
		checkResult(t, r, one)
		if !strings.Contains(table.String(), "\n"+one.Name+" ") {
			t.Errorf("the printed results: want a line for %s, got:\n%s", one.Name, &table)
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
	for _, c := range one.Checks {
		if want := r.model(one).rateOnMachine(c.Cores, float64(r.Machine.Cores)); c.Predicted != want {
			t.Errorf("%s, limit of %g cores: predicted %g/s, want %g/s from the costs", one.Name, c.Cores, c.Predicted, want)
		}
	}
}

func readReport(t *testing.T, file string) report {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]report
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all[section]
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-window=0s"}, {"-warmup=-1s"}, {"-clients=0"}, {"-quiet=-1s"}, {"-limits="}, {"-limits=1,0"}, {"-limits=all"}, {"-fast"}, {"ports"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, harness.ErrUsage) {
			t.Errorf("invalid command line %v: got error %v, want harness.ErrUsage", args, err)
		}
	}
}
