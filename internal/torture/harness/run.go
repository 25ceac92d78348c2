package harness

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"berth/internal/resultfile"
)

// maxRest is the time within which all work must end after the last fault. It is so long because the last
// comparison with Temporal, which sets the gauges, begins up to a minute late on a busy machine.
const maxRest = 10 * time.Minute

// RunOptions are the options of a run of random faults.
type RunOptions struct {
	seed     uint64
	duration time.Duration
	kinds    []faultKind
	writers  int
	// With a positive interval, the faults are only kills, one in each interval, and CheckAfterFaults checks
	// that nothing has grown.
	killEvery time.Duration
	// JSON file whose key soak gets the samples of the run; empty: none
	out string
}

// ReadRunOptions reads the options from the environment. Without options the run is a short one.
func ReadRunOptions(t *testing.T) RunOptions {
	t.Helper()
	o := RunOptions{
		seed:     rand.Uint64N(1_000_000),
		duration: 25 * time.Second,
		writers:  2,
	}
	if v := os.Getenv("BERTH_TEST_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("BERTH_TEST_SEED: %v", err)
		}
		o.seed = n
	}
	if v := os.Getenv("BERTH_TEST_DURATION"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("BERTH_TEST_DURATION: %v", err)
		}
		o.duration, o.writers = d, 3
	}
	if v := os.Getenv("BERTH_TEST_KILL_EVERY"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			t.Fatalf("BERTH_TEST_KILL_EVERY=%q is no positive duration", v)
		}
		o.killEvery = d
	}
	o.out = os.Getenv("BERTH_TEST_OUT")
	names := strings.Split(os.Getenv("BERTH_TEST_FAULTS"), ",")
	for _, k := range faultKinds {
		if names[0] == "" && !k.optional || names[0] == "all" || slices.Contains(names, k.name) {
			o.kinds = append(o.kinds, k)
		}
	}
	if len(o.kinds) == 0 {
		t.Fatalf("BERTH_TEST_FAULTS=%q names no kind of fault", names)
	}
	return o
}

// DrawTimeline draws the faults of the run, and logs the options that repeat them.
func (o RunOptions) DrawTimeline(t *testing.T) []PlannedFault {
	t.Helper()
	timeline := drawTimeline(o.seed, o.duration, o.kinds)
	if o.killEvery > 0 {
		timeline = drawKills(o.seed, o.duration, o.killEvery)
	}
	t.Logf("SEED=%d DURATION=%s: %d faults are planned", o.seed, o.duration, len(timeline))
	return timeline
}

// CheckAfterFaults stops the clients, waits until all work has ended, and reports what berth has lost,
// doubled or left.
func (d *RandomDeployment) CheckAfterFaults(
	o RunOptions,
	faults map[string]int,
	stop func() [][]porcupine.Operation,
) {
	d.Helper()
	ended := time.Now()
	histories := stop()
	findings := append(d.awaitRest(d.ledger, ended.Add(maxRest)), checkRegisters(histories)...)
	report := d.samples.report(o.duration)
	report.Faults, report.Findings = faults, len(findings)
	d.Log(table(faults, d.ledger, findings, time.Since(ended)) + report.table())
	if err := resultfile.WriteSection(o.out, soakSection, report); err != nil {
		d.Error(err)
	}
	if grown := report.grown(); o.killEvery > 0 && len(grown) > 0 {
		d.Errorf("after %s these have grown: %s", o.duration, strings.Join(grown, "; "))
	}
	for _, f := range findings[:min(len(findings), 15)] {
		d.Error(f)
		d.describe(f.object)
	}
	if len(findings) > 0 {
		d.Errorf(
			"%d findings; run it again with SEED=%d DURATION=%s",
			len(findings),
			o.seed,
			o.duration,
		)
	}
}

// RunClients starts the clients. The returned function stops the clients and returns the histories of the
// registers. A register is the data that one Placement generation protects.
func (d *RandomDeployment) RunClients(o RunOptions) (stop func() [][]porcupine.Operation) {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	l := d.ledger
	leases := &leaseClient{randomClient: d.newClient(l, o.seed, 0)}
	leases.registerHosts(ctx)
	agents := &agentInterfaces{rpc: &rpcAgents{url: d.rabbit.URL(0)}}
	var clients, connection sync.WaitGroup
	connection.Go(func() { agents.rpc.keepConnected(d.Context()) })
	d.Cleanup(connection.Wait) // after the end of the test's context
	var histories [][]porcupine.Operation
	d.samples.began = time.Now()
	clients.Go(func() { d.sampleEvery(ctx, o.duration/120) })
	clients.Go(func() { leases.run(ctx) })
	clients.Go(func() { sendHeartbeats(ctx, d.newClient(l, o.seed, 1)) })
	clients.Go(func() { operateJournal(ctx, d.newClient(l, o.seed, 2)) })
	clients.Go(func() { sendForbiddenRequests(ctx, d.newClient(l, o.seed, 3)) })
	clients.Go(func() { histories = d.writeRegisters(ctx, l, o.seed) })
	for n := range uint64(o.writers) {
		c := &networkClient{randomClient: d.newClient(l, o.seed, 10+n), agents: agents}
		clients.Go(func() { c.run(ctx) })
	}
	stop = sync.OnceValue(func() [][]porcupine.Operation {
		cancel()
		clients.Wait()
		return histories
	})
	d.Cleanup(func() { stop() })
	return stop
}

// awaitRest repeats the checks until they find nothing or the deadline is over, and returns the last
// findings.
func (d *RandomDeployment) awaitRest(l *ledger, deadline time.Time) []finding {
	d.Helper()
	operator := d.newClient(l, 0, 0)
	agents, stopAgents := context.WithCancel(d.Context())
	var heartbeats sync.WaitGroup
	heartbeats.Go(func() { sendHeartbeats(agents, d.newClient(newLedger(), 0, 1)) })
	defer heartbeats.Wait()
	defer stopAgents()
	ended, logged := time.Now(), 0
	for {
		// an earlier request to pause that got no answer may have taken effect late
		operator.resume(d.Context())
		operator.retryFailed(d.Context())
		ctx, cancel := context.WithTimeout(d.Context(), 30*time.Second)
		w, err := d.observe(ctx)
		cancel()
		var findings []finding
		if err != nil {
			findings = []finding{{stuck, "test", err.Error()}}
		} else {
			findings = check(l, w)
		}
		if len(findings) == 0 || time.Now().After(deadline) {
			return findings
		}
		if n := int(time.Since(ended) / (15 * time.Second)); n > logged {
			logged = n
			d.Logf(
				"after %s without a fault %d findings are left, first: %s",
				time.Since(ended).Round(time.Second),
				len(findings),
				findings[0],
			)
		}
		pause(d.Context(), time.Second)
	}
}

// table returns the summary of a run.
func table(faults map[string]int, l *ledger, findings []finding, rest time.Duration) string {
	var b strings.Builder
	line := func(what string, n any) { fmt.Fprintf(&b, "  %-36s %8v\n", what, n) }
	b.WriteString("\nfaults\n")
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		line(name, faults[name])
	}
	b.WriteString("operations acknowledged\n")
	for _, name := range slices.Sorted(maps.Keys(l.acknowledged)) {
		line(name, l.acknowledged[name])
	}
	line("requests without an answer, or 5xx", l.unanswered)
	line("requests refused (4xx)", l.refused)
	line("requests denied", l.denied)
	b.WriteString("violations\n")
	for _, class := range []findingClass{lost, doubled, outOfOrder, stuck, drifted, notDenied, crashed} {
		n := 0
		for _, f := range findings {
			if f.class == class {
				n++
			}
		}
		line(string(class), n)
	}
	line("seconds until everything was at rest", rest.Round(time.Second).Seconds())
	return b.String()
}

// CheckServerErrors checks that berth has answered no request with a server error but 503 with Retry-After.
func (d *RandomDeployment) CheckServerErrors() {
	d.Helper()
	if errors := d.ledger.serverErrors; len(errors) > 0 {
		d.Errorf("%d server errors, want only 503 with Retry-After; the first: %s", len(errors), errors[0])
	}
}

// KillWhile kills random processes for a fifth of the duration of the run, and returns their number.
func (d *RandomDeployment) KillWhile(o RunOptions, part uint64) int {
	d.Helper()
	kinds := slices.DeleteFunc(slices.Clone(faultKinds), func(k faultKind) bool { return k.name != "process killed" })
	timeline := drawTimeline(o.seed+part, o.duration/5, kinds)
	return d.RunFaults(timeline)["process killed"]
}
