package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
)

func TestRun_SmallRunComparesBothServersAndLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	out, printed := benchtest.Run(
		t, run,
		"-clients=2",
		"-rounds=2",
		"-requests=4",
		"-providers=12",
		"-quiet=0",
		"-python",
		placementPython(t),
	)

	r := benchtest.Read[report](t, out, section)
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
		if !strings.Contains(printed, "\n"+f.Name+" ") {
			t.Errorf("the printed table: want a line for the figure %s, got:\n%s", f.Name, printed)
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

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	benchtest.CheckUsage(
		t, run,
		[]string{},
		[]string{"-python=p", "-clients=0"},
		[]string{"-python=p", "-rounds=0"},
		[]string{"-python=p", "-requests=0"},
		[]string{"-python=p", "-quiet=-1s"},
		[]string{"-python=p", "all"},
		[]string{"-fast"},
	)
}
