package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
)

func TestMain(m *testing.M) { benchtest.Main(m, main) }

func TestRun_SmallRunMeasuresAllCurvesAndLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	out, printed := benchtest.Run(
		t, run,
		"-dev-server",
		"-sizes=400",
		"-idle-ports=350", // fewer than the ports
		"-requests=2",
		"-warmup=1",
		"-idle=1s",
	)

	r := benchtest.Read[report](t, out, section)
	if r.Machine.Cores == 0 || r.Machine.PostgreSQL == "" || r.Machine.Temporal == "" || !r.Machine.DevServer {
		t.Errorf("machine of a run on the dev server: want cores, the versions of PostgreSQL and Temporal, and DevServer true; got %+v",
			r.Machine)
	}
	for _, c := range r.Curves {
		if !strings.Contains(printed, "\n"+c.Name+" ") {
			t.Errorf("the printed table: want a line for the curve %s, got:\n%s", c.Name, printed)
		}
		// The CPU time may be less than the unit in which the system counts it. A short run may have no
		// sweep.
		if cpu := strings.HasPrefix(c.Name, "idle-cpu") || c.Name == "sweep"; cpu {
			continue
		}
		for i, v := range c.Values {
			if v == nil {
				t.Errorf("curve %s, size %d: got no value, want one", c.Name, r.Sizes[i].Size)
			}
		}
	}
}

func TestRun_FailedSizeKeepsTheResultsOfTheOthers(t *testing.T) {
	t.Parallel()
	one := 2.0
	before := sizeResult{Size: 1000, Routes: []routeResult{{Name: "get-port", Count: 1, P50: one, P99: one}}}
	r := report{}
	r.add(before)
	r.add(sizeResult{Size: 10_000})
	r.add(sizeResult{Size: 10_000, Error: "the disk is full"})

	if d := cmp.Diff([]sizeResult{before, {Size: 10_000, Error: "the disk is full"}}, r.Sizes); d != "" {
		t.Errorf("sizes (-want +got):\n%s", d)
	}
	for _, c := range r.Curves {
		if c.Name == "get-port" {
			want := curve{
				Name:   "get-port",
				Title:  c.Title,
				Group:  networking,
				Unit:   "ms",
				Values: []*float64{&one, nil},
				P99:    []*float64{&one, nil},
				Ratio:  1,
				Bound:  flatRatio,
				Flat:   true,
			}
			if d := cmp.Diff(want, c); d != "" {
				t.Errorf("curve of a route that only the first size has (-want +got):\n%s", d)
			}
		}
	}
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	benchtest.CheckUsage(
		t, run,
		[]string{"-sizes=many"},
		[]string{"-sizes=10000,1000"},
		[]string{"-sizes=100", "-requests=100"}, // two requests would delete the same port
		[]string{"-requests=0"},
		[]string{"-warmup=-1"},
		[]string{"-idle=0"},
		[]string{"-idle-ports=0"},
		[]string{"-parts=idle,all"},
		[]string{"-fast"},
		[]string{"routes"},
	)
}

func TestCurve_IsFlatUpToItsBound(t *testing.T) {
	t.Parallel()
	of := func(values ...float64) []*float64 {
		var all []*float64
		for _, v := range values {
			all = append(all, measured(v))
		}
		return all
	}
	for name, c := range map[string]struct {
		curve curve
		flat  bool
		ratio float64
	}{
		"below the bound":       {curve{Bound: 1.5, Values: of(2, 9, 3)}, true, 1.5},
		"above the bound":       {curve{Bound: 1.5, Values: of(2, 2, 3.2)}, false, 1.6},
		"last not measured":     {curve{Bound: 1.5, Values: of(2, 2, 0)}, true, 1},
		"nothing measured":      {curve{Bound: 1.5, Values: of(0, 0)}, false, 0},
		"without a bound":       {curve{Values: of(1, 1)}, false, 1},
		"falls":                 {curve{Bound: 1.5, Values: of(4, 1)}, true, 0.25},
		"first not measured":    {curve{Bound: 1.5, Values: of(0, 2, 6)}, false, 3},
		"only one was measured": {curve{Bound: 1.5, Values: of(0, 2)}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.curve.judged()
			if got.Flat != c.flat || got.Ratio != c.ratio {
				t.Errorf("got flat %t with the ratio %v, want %t with %v", got.Flat, got.Ratio, c.flat, c.ratio)
			}
		})
	}
}

func TestObject_EachRouteHasObjectsOfItsOwn(t *testing.T) {
	t.Parallel()
	const requests = 220
	for _, size := range []int{shares * requests, 1000, 10_000, 100_000, 1_000_000} {
		seen := map[int]int{}
		for share := range shares {
			for i := range requests {
				n := object(size, share, i)
				if n < 1 || n > size {
					t.Errorf("size %d, share %d, request %d: got object %d, want 1 to %[1]d", size, share, i, n)
				}
				if other, used := seen[n]; used {
					t.Errorf("size %d: the shares %d and %d both have the object %d", size, other, share, n)
				}
				seen[n] = share
			}
		}
	}
}
