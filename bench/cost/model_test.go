package main

import (
	"math"
	"testing"
	"time"

	"berth/bench/harness"
)

// example is the model of an operation that needs 4 ms in the servers and 1 ms in the client.
var example = costModel{
	idle: map[string]float64{"temporal": 0.1, "client": 0.05},
	cost: map[string]float64{
		"api":                  1,
		"relay,temporal":       0.5,
		"postgres of berth":    0.5,
		"temporal":             1.25,
		"postgres of temporal": 0.75,
		"client":               1,
	},
}

func TestNewCostModel_LeavesOutWhatTheServersUseWithoutLoad(t *testing.T) {
	t.Parallel()
	s := harness.Sample{Count: 100, Seconds: 10, CPU: harness.CPUTimes{
		"berth api":         200 * time.Millisecond,
		"postgres":          100 * time.Millisecond,
		"postgres of berth": 300 * time.Millisecond,
		"server":            1500 * time.Millisecond,
		"bench":             50 * time.Millisecond,
		"stubs":             50 * time.Millisecond,
	}}

	m := newCostModel(map[string]float64{"temporal": 0.1, "relay,temporal": 0.01}, s)

	for name, want := range map[string]float64{
		"api":               2,
		"relay,temporal":    0, // it used less than without load
		"postgres of berth": 4,
		"temporal":          5,
		"client":            1,
	} {
		if got := m.cost[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("CPU time of an operation in %s: got %g ms, want %g ms", name, got, want)
		}
	}
}

func TestRateOnMachine_IsLimitedByTheServersOrByTheMachine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ limit, machine, want float64 }{
		"the limit":                    {0.5, 2, 100}, // (0.5 - 0.1) / 4 ms
		"the machine, with the client": {2, 2, 370},   // (2 - 0.15) / 5 ms
		"less than without load":       {0.05, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := example.rateOnMachine(tt.limit, tt.machine); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("rate with a limit of %g of %g cores: got %g/s, want %g/s", tt.limit, tt.machine, got, tt.want)
			}
		})
	}
}

func TestRate_IsReachedWhenThePartsUseAllCores(t *testing.T) {
	t.Parallel()
	for _, cores := range []float64{8, 32, 128} {
		rate := example.rate(cores)
		var used float64
		for _, p := range harness.Servers {
			used += example.cores(p, rate)
		}
		if math.Abs(used-cores) > 1e-9 {
			t.Errorf("cores that the servers use at %g/s: got %g, want %g", rate, used, cores)
		}
	}
}

func TestBottleneck_UsesTheMostCores(t *testing.T) {
	t.Parallel()
	if got := example.bottleneck(harness.Servers, 1000).Name; got != "temporal" {
		t.Errorf("bottleneck of the servers: got %s, want temporal", got)
	}
	if got := example.bottleneck(harness.Databases, 1000).Name; got != "postgres of temporal" {
		t.Errorf("bottleneck of the databases: got %s, want postgres of temporal", got)
	}
}
