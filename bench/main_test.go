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

	"berth/bench/figure"
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

func TestRun_ShortRunOfAllFiguresLeavesOnlyTheResults(t *testing.T) {
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
	out := filepath.Join(t.TempDir(), "bench.json")
	var table, progress bytes.Buffer

	err = run(t.Context(), []string{
		"-dev-server",
		"-window=300ms",
		"-warmup=100ms",
		"-rounds=1",
		"-in-flight=4",
		"-signals=60",
		"-idle=20",
		"-dir",
		dir,
		"-worker",
		filepath.Join(programs, "worker"),
		"-out",
		out,
	}, &table, &progress)

	if err != nil {
		t.Fatalf("a short run of all figures: got error %v, want none; output:\n%s", err, &progress)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf(
			"read the folder of temporary files after the run: got files %v, error %v; want no files",
			left,
			err,
		)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	var names []string
	rates := map[string]float64{}
	for _, f := range r.Figures {
		names = append(names, f.Name)
		rates[f.Name] = f.Rate
		if !strings.Contains(table.String(), "\n"+f.Name+" ") {
			t.Errorf("the printed table: want a line for the figure %s, got:\n%s", f.Name, &table)
		}
		if f.Baseline != "" && f.Ratio != harness.Ratio(f.Rate, rates[f.Baseline]) {
			t.Errorf("figure %s: ratio %v, want the rate %v divided by the baseline's rate %v",
				f.Name, f.Ratio, f.Rate, rates[f.Baseline])
		}
	}
	if diff := cmp.Diff(figure.Names(), names); diff != "" {
		t.Error(diff)
	}
	if r.Machine.Cores == 0 || r.Machine.PostgreSQL == "" || r.Machine.Temporal == "" ||
		!r.Machine.DevServer {
		t.Errorf(
			"report of a run on the dev server: want cores, the versions of PostgreSQL and Temporal, and DevServer true; got %+v",
			r.Machine,
		)
	}
	// On a busy machine a figure may complete no operation during the window. Only the figure `transactions`
	// always counts at least one operation, because a commit is shorter than the window.
	if rates["transactions"] == 0 {
		t.Errorf("the figure `transactions`: want at least one counted transaction; got the report %+v", r)
	}
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-figures=speed"}, {"-rounds=0"}, {"-window=-1s"}, {"-in-flight=0"}, {"-signals=1"}, {"-idle=0"}, {"-fast"}, {"ports"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, harness.ErrUsage) {
			t.Errorf("invalid command line %v: got error %v, want harness.ErrUsage", args, err)
		}
	}
}
