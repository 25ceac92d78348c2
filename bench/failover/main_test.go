package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
)

func TestMain(m *testing.M) { benchtest.Main(m, main) }

func TestRun_ShortRunMeasuresAFailoverAndLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	out, _ := benchtest.Run(
		t, run,
		"-dev-server",
		"-clients=4",
		"-rate=20",
		"-before=500ms",
		"-outage=500ms",
		"-after=500ms",
		"-rest=0",
	)

	r := benchtest.Read[report](t, out, section)
	var names []string
	for _, e := range r.Events {
		names = append(names, e.Name)
	}
	if d := cmp.Diff([]string{killed, promoted, returned}, names); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if r.Lost != 0 || r.FirstWrite <= 0 || r.Acknowledged == 0 {
		t.Errorf("writes: got %d acknowledged, %d lost, the first one %gs after the promotion; want none lost and one after the promotion",
			r.Acknowledged, r.Lost, r.FirstWrite)
	}
	counted := 0
	for _, in := range r.Intervals {
		counted += in.Acknowledged + in.Refused + in.Failed
	}
	if counted != r.Sent {
		t.Errorf("answers in the intervals: got %d, want %d as requests", counted, r.Sent)
	}
}

// example has the answers of a load whose primary was killed after 2 s and whose standby was promoted after
// 4 s.
func example() report {
	r := report{
		Settings: reportedSettings{Interval: 1},
		Events:   []event{{2, killed}, {4, promoted}},
	}
	for _, a := range []answer{
		{sent: time.Second, took: 100 * time.Millisecond, kind: allocation, status: 200},
		{sent: 1900 * time.Millisecond, took: 1600 * time.Millisecond, kind: network, status: 503},
		{sent: 2500 * time.Millisecond, took: 300 * time.Millisecond, kind: read, status: 503},
		{sent: 3 * time.Second, took: 1500 * time.Millisecond, kind: network, status: 201},
		{sent: 4200 * time.Millisecond, took: 100 * time.Millisecond, kind: read, status: 200},
		{sent: 4500 * time.Millisecond, took: 200 * time.Millisecond, kind: allocation, status: 200},
		{sent: 4600 * time.Millisecond, took: 50 * time.Millisecond, kind: allocation, status: 500},
	} {
		r.add(a)
	}
	return r
}

func TestReport_CountsAnswersWhenTheClientGetsThem(t *testing.T) {
	t.Parallel()

	got := example().Intervals

	want := []interval{
		{At: 0},
		{At: 1, Acknowledged: 1},
		{At: 2, Refused: 1},
		{At: 3, Refused: 1},
		{At: 4, Acknowledged: 3, Failed: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("intervals (-want +got):\n%s", d)
	}
}

func TestReport_MeasuresFromTheEndOfThePrimaryAndFromThePromotion(t *testing.T) {
	t.Parallel()
	r := example()
	got := []float64{r.FirstRefusal, r.FirstWrite, r.Longest, float64(r.Acknowledged)}
	// a write that was sent before the promotion does not show that the promoted server accepts new ones
	want := []float64{0.8, 0.7, 1.6, 3}
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }) {
		t.Errorf("first 503, first write, longest request, acknowledged writes: got %v, want %v", got, want)
	}
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	benchtest.CheckUsage(
		t, run,
		[]string{"-rate=0"},
		[]string{"-clients=0"},
		[]string{"-interval=0s"},
		[]string{"-outage=-1s"},
		[]string{"-fast"},
		[]string{"now"},
	)
}
