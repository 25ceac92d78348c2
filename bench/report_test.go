package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/bench/figure"
	"berth/bench/harness"
)

func TestResultOf_RatioOfAllRoundsTogether(t *testing.T) {
	t.Parallel()
	base := resultOf(figure.Figure{Name: "noop"}, []harness.Sample{
		{Count: 100, Seconds: 1, CPU: harness.CPUTimes{"server": 300 * time.Millisecond}},
		{
			Count:   500,
			Seconds: 2,
			CPU:     harness.CPUTimes{"server": 150 * time.Millisecond, "bench": 150 * time.Millisecond},
		},
	}, nil)

	r := resultOf(figure.Figure{Name: "ports", Baseline: "noop"}, []harness.Sample{
		{Count: 30, Seconds: 1, CPU: harness.CPUTimes{"worker": 100 * time.Millisecond}},
		{
			Count:   70,
			Seconds: 3,
			CPU:     harness.CPUTimes{"worker": 100 * time.Millisecond, "server": 50 * time.Millisecond},
		},
	}, []result{base})

	want := result{
		Name:     "ports",
		Count:    100,
		Seconds:  4,
		Rate:     25,
		Rounds:   []float64{30, 70.0 / 3},
		Baseline: "noop",
		Ratio:    0.125,
		ByCPU:    0.4,
		CPU:      map[string]float64{"worker": 2, "server": 0.5},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}
