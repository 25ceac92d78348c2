package harness

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"berth/internal/contract"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
)

// consistentState returns a ledger and an observation without any violation: a network, a port that is ACTIVE
// after the reports of both agents, a port that waits for its agents, a deleted port, and a lease that has
// ended.
func consistentState() (*ledger, *observation) {
	l := newLedger()
	l.created("network", "n1", map[string]string{"name": "blue"})
	l.created("lease", "l1", map[string]string{"name": "night"})
	done := l.created("port", "p1", map[string]string{"name": "web", "host": "cmp-1"})
	l.reported(done, "L2", "cmp-1", "signal")
	l.reported(done, "DHCP", "cmp-1", "HTTP")
	l.created("port", "p2", map[string]string{"name": "db", "host": "cmp-2"})
	l.setDeletion(l.created("port", "p3", map[string]string{"name": "old", "host": "cmp-2"}), deleted)
	return l, &observation{
		rows: map[string]row{
			"network/n1": {name: "blue"},
			"port/p1":    {name: "web", host: "cmp-1", status: "ACTIVE"},
			"port/p2": {
				name:   "db",
				host:   "cmp-2",
				status: "DOWN",
				blocks: []string{"DHCP", "L2"},
			},
			"lease/l1": {name: "night", status: endedLease},
		},
		executions: map[string]execution{
			"port/p1": {kind: contract.Port, status: "ACTIVE", host: "cmp-1"},
			"port/p2": {kind: contract.Port, status: "DOWN", host: "cmp-2"},
		},
		mirrored: map[string]string{"network/n1": "blue", "port/p1": "web", "port/p2": "db"},
		requests: []odltest.Request{
			{
				Method:   "POST",
				Type:     "network",
				ID:       "n1",
				Revision: 1,
				Applied:  true,
			},
			{
				Method:   "PUT",
				Type:     "network",
				ID:       "n1",
				Revision: 2,
				Applied:  true,
			},
			{
				Method:  "DELETE",
				Type:    "port",
				ID:      "p3",
				Applied: true,
			},
		},
		plugged:    map[string]int{"p1": 1},
		servers:    []string{"node-1", "node-2"},
		aggregates: []notifytest.Aggregate{{Name: "freepool", Hosts: []string{"node-2", "node-1"}}},
		gauges:     map[string]float64{"berth_unattended_rows": 0},
	}
}

func TestCheck_FindsPlantedViolationOfEachPromise(t *testing.T) {
	t.Parallel()
	change := func(w *observation, key string, f func(*row)) {
		r := w.rows[key]
		f(&r)
		w.rows[key] = r
	}
	for name, tc := range map[string]struct {
		plant func(*ledger, *observation)
		want  findingClass // class of the finding; empty: the check must find nothing
		names string       // object or process that the finding must name
	}{
		"nothing is planted": {plant: func(*ledger, *observation) {}},
		"an unanswered write that took effect": {plant: func(l *ledger, w *observation) {
			l.changing(l.promises["network/n1"], "name", "green")
			change(w, "network/n1", func(r *row) { r.name = "green" })
			w.mirrored["network/n1"] = "green"
		}},
		"an unanswered deletion that took effect": {plant: func(l *ledger, w *observation) {
			l.setDeletion(l.promises["lease/l1"], perhapsDeleted)
			delete(w.rows, "lease/l1")
		}},
		"a port whose reports came before an unanswered migration": {plant: func(l *ledger, w *observation) {
			l.changing(l.promises["port/p1"], "host", "cmp-2")
			change(w, "port/p1", func(r *row) { r.host, r.status = "cmp-2", "DOWN" })
			w.executions["port/p1"] = execution{kind: contract.Port, status: "DOWN", host: "cmp-2"}
		}},

		"an acknowledged object has no row":             {func(_ *ledger, w *observation) { delete(w.rows, "network/n1") }, lost, "network/n1"},
		"an acknowledged value is not in the row":       {func(_ *ledger, w *observation) { change(w, "port/p2", func(r *row) { r.name = "before" }) }, lost, "port/p2"},
		"an acknowledged deletion did not happen":       {func(_ *ledger, w *observation) { w.rows["port/p3"] = row{name: "old", status: "DOWN"} }, lost, "port/p3"},
		"one request created two objects":               {func(_ *ledger, w *observation) { w.rows["network/n2"] = row{name: "blue"} }, doubled, "network/n2"},
		"the next read did not show an acknowledgement": {func(l *ledger, _ *observation) { l.addFinding(lost, "port/p1", "the next read answered 404") }, lost, "port/p1"},
		"an acknowledged signal was lost": {func(_ *ledger, w *observation) {
			change(w, "port/p1", func(r *row) { r.status, r.blocks = "DOWN", []string{"L2"} })
		}, lost, "port/p1"},
		"Nova got no event":                    {func(_ *ledger, w *observation) { clear(w.plugged) }, lost, "port/p1"},
		"a journal entry does not progress":    {func(_ *ledger, w *observation) { w.unfinished = []string{"journal entry 7 is pending: timeout"} }, stuck, "journal entry 7 is pending"},
		"a row without an execution":           {func(_ *ledger, w *observation) { delete(w.executions, "port/p2") }, drifted, "port/p2"},
		"a running lease without an execution": {func(_ *ledger, w *observation) { change(w, "lease/l1", func(r *row) { r.status = "ACTIVE" }) }, drifted, "lease/l1"},
		"an execution without a row":           {func(_ *ledger, w *observation) { w.executions["port/p9"] = execution{kind: contract.Port} }, drifted, "port/p9"},
		"a search attribute shows an older status": {func(_ *ledger, w *observation) {
			w.executions["port/p2"] = execution{kind: contract.Port, status: "ACTIVE"}
		}, drifted, "port/p2"},
		"a drift gauge is not zero":                       {func(_ *ledger, w *observation) { w.gauges["berth_unattended_rows"] = 1 }, drifted, "berth_unattended_rows"},
		"an older revision after a newer":                 {func(_ *ledger, w *observation) { w.requests[0], w.requests[1] = w.requests[1], w.requests[0] }, outOfOrder, "network/n1"},
		"a child before its parent":                       {func(_ *ledger, w *observation) { w.violations = []string{"port p1 was written before its network n1"} }, outOfOrder, "controller"},
		"a revision twice":                                {func(_ *ledger, w *observation) { w.requests = append(w.requests, w.requests[1]) }, doubled, "network/n1"},
		"the controller lacks an object":                  {func(_ *ledger, w *observation) { delete(w.mirrored, "port/p2") }, drifted, "port/p2"},
		"the controller keeps a deleted object":           {func(_ *ledger, w *observation) { w.mirrored["port/p3"] = "old" }, drifted, "port/p3"},
		"the controller has an older name":                {func(_ *ledger, w *observation) { w.mirrored["network/n1"] = "before" }, drifted, "network/n1"},
		"a killed process left a lease's aggregate":       {func(_ *ledger, w *observation) { w.aggregates = append(w.aggregates, notifytest.Aggregate{Name: "r1"}) }, drifted, "aggregate r1"},
		"a killed process kept a host out of the pool":    {func(_ *ledger, w *observation) { w.aggregates[0].Hosts = []string{"node-1"} }, drifted, "aggregate freepool"},
		"a process crashed by itself":                     {func(_ *ledger, w *observation) { w.crashes = []string{"panic: index out of range"} }, crashed, "process"},
		"a running workflow failed":                       {func(_ *ledger, w *observation) { w.failed = []string{"port/p1 Failed"} }, crashed, "workflow"},
		"a request without permission was not denied":     {func(l *ledger, _ *observation) { l.addFinding(notDenied, "port/p1", "DELETE answered 204") }, notDenied, "port/p1"},
		"a request without permission changed the object": {func(_ *ledger, w *observation) { change(w, "network/n1", func(r *row) { r.name = "stolen" }) }, lost, "network/n1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := consistentState()
			tc.plant(l, w)
			got := check(l, w)
			wanted := func(f finding) bool { return f.class == tc.want && f.object == tc.names }
			if tc.want == "" && len(got) > 0 || tc.want != "" && !slices.ContainsFunc(got, wanted) {
				t.Errorf("check: got %v, want the class %q and the object %q", got, tc.want, tc.names)
			}
		})
	}
}

func TestCheckRegisters_FindsTwoWinnersOfOneGeneration(t *testing.T) {
	t.Parallel()
	history := func(second Outcome) []porcupine.Operation {
		write := Access{Register: "c", Kind: Write, Value: "a"}
		other := write
		other.Value = "b"
		return []porcupine.Operation{
			{
				ClientId: 0,
				Input:    write,
				Output:   Outcome{Known: true, Generation: 1},
				Call:     0,
				Return:   1,
			},
			{
				ClientId: 1,
				Input:    other,
				Output:   second,
				Call:     2,
				Return:   3,
			},
		}
	}
	got := checkRegisters([][]porcupine.Operation{history(Outcome{Known: true, Refused: true})})
	if len(got) > 0 {
		t.Errorf(
			"check a history in which the second writer of a generation is refused: got %v, want no finding",
			got,
		)
	}
	got = checkRegisters([][]porcupine.Operation{history(Outcome{Known: true, Generation: 1})})
	if len(got) != 1 || got[0].class != doubled {
		t.Errorf(
			"check a history in which both writers of a generation are acknowledged: got %v, want one finding of the class doubled",
			got,
		)
	}
}

// The test plants a leak, a level that is noisy, and a slower answer in samples of an hour.
func TestCourses_ReportWhatHasGrown(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	s := &samples{quantity: map[string][]point{}}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 120 {
		at, noise := time.Duration(i)*hour/120, 20*r.Float64()
		for name, value := range map[string]float64{
			"leak":                 300 + float64(i) + noise,
			"filled cache":         min(300, 100+20*float64(i)) + noise,
			"level":                300 + noise,
			"rows of lease":        10 * float64(i),
			"bytes of WAL":         1e6 * float64(i),
			"few rows":             float64(i / 40),
			"falls":                300 - float64(i) + noise,
			"rows of note, rising": float64(i) * float64(i),
		} {
			s.quantity[name] = append(s.quantity[name], point{at, value})
		}
		s.latencies = append(s.latencies, point{at, 10 + float64(i)/20})
	}
	report := s.report(hour)
	var names []string
	for _, g := range report.grown() {
		name, _, _ := strings.Cut(g, ":")
		names = append(names, name)
	}
	want := []string{"leak", "rows of note, rising", "99th percentile of latency"}
	if !slices.Equal(names, want) {
		t.Errorf("report: got growth of %v, want of %v\n%s", names, want, report.table())
	}
	s.latencies = []point{{0, 10}, {hour - 1, 12}}
	if grown := s.report(hour).grown(); len(grown) != 2 {
		t.Errorf("report with a latency of 10 ms and then 12 ms: got growth of %v, want no word of the latency", grown)
	}
}

func TestDrawTimeline_SameSeedSameFaults(t *testing.T) {
	t.Parallel()
	describe := func(seed uint64) string {
		var lines []string
		for _, f := range drawTimeline(seed, 10*time.Minute, faultKinds) {
			lines = append(lines, f.at.String()+" "+f.kind.name+" "+f.lasts.String())
		}
		return strings.Join(lines, "\n")
	}
	if first, second := describe(1), describe(1); first != second || first == describe(2) {
		t.Error("draw timelines: want the same faults for the same seed, and others for another seed")
	}
	for _, k := range faultKinds {
		if !strings.Contains(describe(1), k.name) {
			t.Errorf("draw a timeline of ten minutes: want a fault of the kind %q, got none", k.name)
		}
	}
}
