package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/harness"
	"berth/internal/devstack"
)

func TestRun_SmallRunComparesBothServersAndLeavesOnlyTheResults(t *testing.T) {
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
	out := filepath.Join(t.TempDir(), "peers.json")
	var table, progress bytes.Buffer

	err = run(t.Context(), []string{
		"-clients=2",
		"-rounds=2",
		"-requests=4",
		"-providers=12",
		"-quiet=0",
		"-dir",
		dir,
		"-worker",
		filepath.Join(programs, "worker"),
		"-python",
		placementPython(t),
		"-out",
		out,
	}, &table, &progress)

	if err != nil {
		t.Fatalf("a small run: got error %v, want equal answers and no error; output:\n%s", err, &progress)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("folder of temporary files after the run: got %v, error %v; want no files", left, err)
	}
	r := readReport(t, out)
	var got, want []string
	for _, f := range figures {
		want = append(want, f.name)
	}
	for _, f := range r.Figures {
		got = append(got, f.Name)
		if f.Berth.Requests == 0 || f.Berth.Requests != f.Placement.Requests || len(f.Berth.Rounds) != 2 ||
			f.Ratio != f.Berth.Rate/f.Placement.Rate {
			t.Errorf("figure %s: got %+v, want equal counts, two rounds, and the ratio of the rates", f.Name, f)
		}
		if !strings.Contains(table.String(), "\n"+f.Name+" ") {
			t.Errorf("the printed table: want a line for the figure %s, got:\n%s", f.Name, &table)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("figures in the results (-want +got):\n%s", d)
	}
	if r.Machine.Placement == "" || r.Machine.UWSGI == "" || r.Machine.PostgreSQL == "" {
		t.Errorf("machine in the results: got %+v, want the versions of all servers", r.Machine)
	}
}

// placementPython returns the Python with the packages of tools/placement.txt.
func placementPython(t *testing.T) string {
	t.Helper()
	find := exec.CommandContext(t.Context(), "../../tools/venv.sh", "placement")
	find.Stderr = os.Stderr
	path, err := find.Output()
	if err != nil {
		t.Fatalf("install the packages of tools/placement.txt: %v", err)
	}
	return strings.TrimSpace(string(path))
}

func readReport(t *testing.T, file string) report {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"-python=p", "-clients=0"}, {"-python=p", "-rounds=0"}, {"-python=p", "-requests=0"}, {"-python=p", "-quiet=-1s"}, {"-python=p", "all"}, {"-fast"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, harness.ErrUsage) {
			t.Errorf("invalid command line %v: got error %v, want harness.ErrUsage", args, err)
		}
	}
}
