package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
	"berth/bench/harness"
	"berth/bench/resultpage"
)

// TestHostsTable_EqualsMeasuredResults fails when the table of docs/scaling.md differs from the measured
// results. To update the table, run
// `go test ./bench/hosts -run HostsTable -update`.
func TestHostsTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	resultpage.Tables{
		Page:    "docs/scaling.md",
		Source:  benchtest.Results,
		Command: "go test ./bench/hosts -run HostsTable",
		Root:    "../..",
		Content: map[string]string{
			"hosts":      hostsTable(measured(t, section)),
			"slow-hosts": hostsTable(measured(t, slowSection)),
		},
	}.Check(t)
}

// TestHostsTable_VerdictsFollowFromTheSizes fails if the results were changed by hand, or are older than the
// rule in the code.
func TestHostsTable_VerdictsFollowFromTheSizes(t *testing.T) {
	t.Parallel()
	for _, one := range slices.Concat(measured(t, section).Sizes, measured(t, slowSection).Sizes) {
		if d := cmp.Diff(one.findBehind(), one.Behind); d != "" {
			t.Errorf("%d hosts: the verdict does not follow from the results (-from results +in the file):\n%s", one.Hosts, d)
		}
	}
}

// measured reads measured results.
func measured(t *testing.T, key string) report {
	t.Helper()
	return benchtest.Read[report](t, "../../"+benchtest.Results, key)
}

// hostsTable renders the results, a column for each number of hosts.
func hostsTable(r report) string {
	var b strings.Builder
	m, s := r.Machine, r.Settings
	others := 0.0
	for _, one := range r.Sizes {
		others = max(others, one.OtherCores)
	}
	fmt.Fprintf(&b, "A machine with %d cores, PostgreSQL %s, Temporal %s; a heartbeat of each host every %g s, %g new ports of each host in an hour, a window of %g s.\n",
		m.Cores, strings.Fields(m.PostgreSQL)[0], m.Temporal, s.Interval, s.PortsPerHostHour, s.Window)
	fmt.Fprintf(&b, "In the windows, other programs of the machine used at most %.2f cores.\n\n", others)
	row := func(title string, cell func(sizeResult) string) {
		fmt.Fprintf(&b, "| %s |", title)
		for _, one := range r.Sizes {
			fmt.Fprintf(&b, " %s |", cell(one))
		}
		b.WriteString("\n")
	}
	row("Hosts", func(one sizeResult) string { return fmt.Sprint(one.Hosts) })
	b.WriteString("|---|" + strings.Repeat("---|", len(r.Sizes)) + "\n")
	row("Verdict", sizeResult.verdict)
	loadRows(row, "heartbeats", func(one sizeResult) loadResult { return one.Heartbeats })
	loadRows(row, "ports to ACTIVE", func(one sizeResult) loadResult { return one.Ports })
	row("unfinished journal entries at the end", func(one sizeResult) string { return fmt.Sprint(one.Journal.Unfinished) })
	row("age of the oldest of them", func(one sizeResult) string { return fmt.Sprintf("%.1f s", one.Journal.Oldest) })
	row("agents that are not alive at the end", func(one sizeResult) string { return fmt.Sprint(one.Silent) })
	for _, p := range harness.Parts {
		row("cores: "+p.Title, func(one sizeResult) string { return fmt.Sprintf("%.2f", one.Cores[p.Name]) })
	}
	row("memory of `api`", func(one sizeResult) string { return mebibytes(one.APIBytes) })
	row("memory of `relay,temporal`", func(one sizeResult) string { return mebibytes(one.RelayBytes) })
	row("table `agent` with its indexes", func(one sizeResult) string { return mebibytes(one.AgentBytes) })
	return b.String()
}

// loadRows renders the rows of a load.
func loadRows(row func(string, func(sizeResult) string), title string, of func(sizeResult) loadResult) {
	row(title+": done of wanted, per second", func(one sizeResult) string {
		return fmt.Sprintf("%.1f of %.1f", of(one).Rate, of(one).WantedRate)
	})
	row(title+": p50 / p99", func(one sizeResult) string {
		return fmt.Sprintf("%.1f / %.1f ms", of(one).P50, of(one).P99)
	})
	row(title+": failed", func(one sizeResult) string { return fmt.Sprint(of(one).Failed) })
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/mebibyte) }
