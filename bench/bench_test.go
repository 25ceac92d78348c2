package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"

	"berth/internal/devstack"
	"berth/internal/odl/odltest"
)

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestAShortRunOfEverythingLeavesNothingButItsResults(t *testing.T) {
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

	err = run(t.Context(), []string{"-dev-server", "-window=300ms", "-warmup=100ms", "-rounds=1", "-in-flight=4", "-signals=60", "-idle=20",
		"-dir", dir, "-worker", filepath.Join(programs, "worker"), "-out", out}, &table, &progress)

	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
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
			t.Errorf("the table lacks %s:\n%s", f.Name, &table)
		}
		if f.Against != "" && f.Ratio != ratio(f.Rate, rates[f.Against]) {
			t.Errorf("%s: %v is no ratio of %v to %v", f.Name, f.Ratio, f.Rate, rates[f.Against])
		}
	}
	if diff := cmp.Diff(figureNames(), names); diff != "" {
		t.Error(diff)
	}
	if r.Machine.Cores == 0 || r.Machine.PostgreSQL == "" || r.Machine.Temporal == "" || !r.Machine.DevServer {
		t.Errorf("machine %+v", r.Machine)
	}
	// A window may be shorter than an operation on a machine with other things to do, but not than a commit.
	if rates["transactions"] == 0 {
		t.Errorf("no transactions: %+v", r)
	}
}

func TestProcessThatEndsFailsTheStart(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("no such database"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ended <- errors.New("exit status 1")

	err := newAPI("http://127.0.0.1:1").awaitReady(t.Context(), ended, log)

	if err == nil || !strings.Contains(err.Error(), "exit status 1: no such database") {
		t.Error(err)
	}
}

func TestOnlyTheWindowCounts(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	var begun [3]bool
	op := func(_ context.Context, client int) (int, error) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		if !begun[client] {
			begun[client] = true
			return 1_000_000, nil // before the window opens
		}
		time.Sleep(time.Millisecond)
		return 1, nil
	}

	s, err := measure(t.Context(), pace{InFlight: 3, Warmup: 3 * time.Second, Window: time.Second}, op)

	if err != nil || s.Count == 0 || s.Count >= 1_000_000 {
		t.Errorf("counted %d, error %v", s.Count, err)
	}
	if s.Seconds < 1 || running.Load() != 0 || most.Load() > 3 {
		t.Errorf("%v s, %d still running, %d at the same time", s.Seconds, running.Load(), most.Load())
	}
}

func TestFirstErrorEndsTheMeasure(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	hour := pace{InFlight: 2, Window: time.Hour}

	_, err := measure(t.Context(), hour, func(ctx context.Context, client int) (int, error) {
		if client == 0 {
			return 0, broken
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	_, timedErr := measureTimes(t.Context(), pace{Window: time.Hour}, func(context.Context) (time.Duration, error) { return 0, broken })

	if !errors.Is(err, broken) || !errors.Is(timedErr, broken) {
		t.Errorf("errors %v and %v", err, timedErr)
	}
}

func TestResultIsTheRatioOfWholeRuns(t *testing.T) {
	t.Parallel()
	peer := resultOf(figure{name: "noop"}, []sample{
		{Count: 100, Seconds: 1, CPU: usage{"server": 300 * time.Millisecond}},
		{Count: 500, Seconds: 2, CPU: usage{"server": 150 * time.Millisecond, "bench": 150 * time.Millisecond}},
	}, nil)

	r := resultOf(figure{name: "ports", against: "noop"}, []sample{
		{Count: 30, Seconds: 1, CPU: usage{"worker": 100 * time.Millisecond}},
		{Count: 70, Seconds: 3, CPU: usage{"worker": 100 * time.Millisecond, "server": 50 * time.Millisecond}},
	}, []result{peer})

	want := result{Name: "ports", Count: 100, Seconds: 4, Rate: 25, Rounds: []float64{30, 70.0 / 3}, Against: "noop", Ratio: 0.125, ByCPU: 0.4,
		CPU: map[string]float64{"worker": 2, "server": 0.5}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, c := range []struct {
		times   []time.Duration
		percent int
		want    time.Duration
	}{
		{nil, 50, 0},
		{[]time.Duration{7}, 50, 7},
		{[]time.Duration{7}, 99, 7},
		{[]time.Duration{3, 1, 2}, 50, 2},
		{hundred, 50, 50},
		{hundred, 99, 99},
	} {
		if got := percentile(c.times, c.percent); got != c.want {
			t.Errorf("p%d of %v is %d, want %d", c.percent, c.times, got, c.want)
		}
	}
}

func TestChosenFiguresBringTheirPeers(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"":                      figureNames(),
		"entries":               {"limit", "entries"},
		"latency":               {"latency"},
		"allocations, entries":  {"limit", "entries", "transactions", "allocations"},
		"noop,reads":            {"noop", "selects", "reads"},
		"allocations-together":  {"allocations-apart", "allocations-together"},
		"selects, transactions": {"transactions", "selects"},
	} {
		chosen, err := choose(list)
		var names []string
		for _, f := range chosen {
			names = append(names, f.name)
		}
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("%q: %s %v", list, diff, err)
		}
	}
	for _, args := range [][]string{{"-figures=speed"}, {"-rounds=0"}, {"-window=-1s"}, {"-in-flight=0"}, {"-signals=1"}, {"-idle=0"}, {"-fast"}, {"ports"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestEveryFigureStandsAfterItsPeer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"": true}
	for _, f := range figures {
		if !seen[f.against] || seen[f.name] || f.share <= 0 {
			t.Errorf("%s against %q", f.name, f.against)
		}
		seen[f.name] = true
	}
}

func TestControllerThatMissesSomethingFailsTheRun(t *testing.T) {
	t.Parallel()
	object := func(creates int, has map[string]any) odltest.Record {
		return odltest.Record{Type: "port", ID: "1", Object: has, Creates: creates}
	}
	there := map[string]any{}
	for name, c := range map[string]struct {
		m    mirrored
		made int
		ok   bool
	}{
		"complete":     {mirrored{Objects: []odltest.Record{object(1, there)}}, 1, true},
		"one missing":  {mirrored{Objects: []odltest.Record{object(1, there)}}, 2, false},
		"twice":        {mirrored{Objects: []odltest.Record{object(2, there)}}, 1, false},
		"deleted":      {mirrored{Objects: []odltest.Record{object(1, nil)}}, 1, false},
		"out of order": {mirrored{Objects: []odltest.Record{object(1, there)}, Violations: []string{"port before its network"}}, 1, false},
	} {
		if err := c.m.check(c.made); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatementsAreCountedByWhoAsked(t *testing.T) {
	t.Parallel()
	log := "asked berth berth: LOG:  execute stmtcache_1: \n\tselect 1\n" +
		"asked berth berth: DETAIL:  parameters: $1 = '7'\n" +
		"asked berth berth: LOG:  statement: begin\n" +
		"asked berth [unknown]: LOG:  execute stmtcache_2: select 'what bench asks'\n" +
		"asked temporal [unknown]: LOG:  execute <unnamed>: select 1\n" +
		"asked temporal_visibility [unknown]: LOG:  statement: begin\n" +
		"asked [unknown] [unknown]: LOG:  connection received\n"
	if berth, temporal := asked(log); berth != 2 || temporal != 2 {
		t.Errorf("berth %d, Temporal %d", berth, temporal)
	}
}

func TestCPUTimeGoesToThePartThatSpentIt(t *testing.T) {
	t.Parallel()
	p, err := parseStat("42 (a (b) c) S 7 42 42 0 -1 4194560 100 200 0 0 10 20 30 40 20 0 1 0 5000 1000 10")
	want := process{pid: 42, parent: 7, name: "a (b) c", spent: time.Second}
	if p != want || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	for _, broken := range []string{"", "42", "42 (a) S", "x (a) S 7 42 42 0 -1 4194560 100 200 0 0 10 20 30 40 20"} {
		if _, err := parseStat(broken); err == nil {
			t.Errorf("%q was understood", broken)
		}
	}

	all := map[int]process{
		1: {pid: 1, name: "init"}, 10: {pid: 10, parent: 1, name: "bench"}, 11: {pid: 11, parent: 10, name: "worker"},
		12: {pid: 12, parent: 10, name: "bench", args: "bench " + standInCommand},
		20: {pid: 20, parent: 10, name: "postgres", args: "/usr/lib/postgres -D x"},
		21: {pid: 21, parent: 20, name: "postgres", args: "postgres: temporal temporal_visibility 127.0.0.1(1) idle"},
		22: {pid: 22, parent: 20, name: "postgres", args: "postgres: berth berth 127.0.0.1(2) INSERT"},
		30: {pid: 30, parent: 1, name: "postgres", args: "postgres: berth berth"}, 31: {pid: 31, parent: 99, name: "gone"},
	}
	parts := map[int]string{}
	for pid, p := range all {
		parts[pid] = part(all, p, 10)
	}
	wantParts := map[int]string{1: "", 10: "bench", 11: "worker", 12: "stand-ins", 20: "postgres", 21: "postgres of temporal",
		22: "postgres of berth", 30: "", 31: ""}
	if !maps.Equal(parts, wantParts) {
		t.Error(cmp.Diff(wantParts, parts))
	}
}

func TestACallThatIsLateIsMadeAgainAndOneThatIsRefusedIsNot(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	answers := []error{context.DeadlineExceeded, serviceerror.NewDeadlineExceeded("late"), serviceerror.NewUnavailable("away"), refused, nil}
	calls := 0

	err := insist(t.Context(), func() error {
		calls++
		return answers[calls-1]
	})

	if !errors.Is(err, refused) || calls != 4 {
		t.Errorf("%d calls: %v", calls, err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := insist(over, func() error { return context.DeadlineExceeded }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the run: %v", err)
	}
}
