package main

import (
	"fmt"
	"strings"
	"testing"

	"berth/bench/benchtest"
	"berth/bench/harness"
	"berth/bench/resultpage"
)

// TestPeerTable_EqualsMeasuredResults fails when the table of docs/benchmarks.md differs from the measured
// results. To update the table, run `go test ./bench/peer -run PeerTable -update`.
func TestPeerTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	resultpage.Tables{
		Page:    "docs/benchmarks.md",
		Source:  benchtest.Results,
		Command: "go test ./bench/peer -run PeerTable",
		Root:    "../..",
		Content: map[string]string{"peers": peerTable(benchtest.Read[report](t, "../../"+benchtest.Results, section))},
	}.Check(t)
}

// peerTable renders the results.
func peerTable(r report) string {
	var b strings.Builder
	m, s := r.Machine, r.Settings
	fmt.Fprintf(&b, "\nA machine with %d cores, PostgreSQL %s, OpenStack Placement %s on Python %s with uWSGI %s; "+
		"%d clients, %s resource providers, %d rounds.\n",
		m.Cores, m.PostgreSQL, m.Placement, m.Python, m.UWSGI, s.Clients, harness.Thousands(s.Providers), s.Rounds)
	if r.Busy == 0 {
		b.WriteString("The run did not check whether other programs used the processors.\n\n")
	} else {
		fmt.Fprintf(&b, "Before the measurements, other work used at most %.2f cores.\n\n", r.Busy)
	}
	b.WriteString("| Requests | Ratio | berth: per second | p50 | p99 | OpenStack Placement: per second | p50 | p99 |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "| %s | %.1f | %s | %s |\n", f.Title, f.Ratio, cells(f.Berth), cells(f.Placement))
	}
	b.WriteString("\n")
	return b.String()
}

// cells renders the rate and the percentiles of one server.
func cells(r serverResult) string {
	rate := fmt.Sprintf("%.1f", r.Rate)
	if r.Rate >= 100 {
		rate = harness.Thousands(int(r.Rate + 0.5))
	}
	return fmt.Sprintf("%s | %.1f ms | %.1f ms", rate, r.P50, r.P99)
}
