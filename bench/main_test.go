package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
	"berth/bench/figure"
	"berth/bench/harness"
)

func TestMain(m *testing.M) { benchtest.Main(m, main) }

func TestRun_ShortRunOfAllFiguresLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	out, printed := benchtest.Run(
		t, run,
		"-dev-server",
		"-window=300ms",
		"-warmup=100ms",
		"-rounds=1",
		"-in-flight=4",
		"-signals=60",
		"-idle=20",
	)

	r := benchtest.Read[report](t, out, section)
	var names []string
	rates := map[string]float64{}
	for _, f := range r.Figures {
		names = append(names, f.Name)
		rates[f.Name] = f.Rate
		if !strings.Contains(printed, "\n"+f.Name+" ") {
			t.Errorf("the printed table: want a line for the figure %s, got:\n%s", f.Name, printed)
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
	benchtest.CheckUsage(
		t, run,
		[]string{"-figures=speed"},
		[]string{"-rounds=0"},
		[]string{"-window=-1s"},
		[]string{"-in-flight=0"},
		[]string{"-signals=1"},
		[]string{"-idle=0"},
		[]string{"-fast"},
		[]string{"ports"},
	)
}
