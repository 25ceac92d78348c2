package main

import (
	"fmt"
	"strings"
	"testing"

	"berth/bench/benchtest"
	"berth/bench/harness"
	"berth/bench/resultpage"
)

// TestResultTable_EqualsMeasuredResults fails when the tables of docs/benchmarks.md differ from the measured
// results. To update them, run `go test ./bench -run ResultTable -update`.
func TestResultTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	r := benchtest.Read[report](t, "../"+benchtest.Results, section)
	resultpage.Tables{
		Page:    "docs/benchmarks.md",
		Source:  benchtest.Results,
		Command: "go test ./bench -run ResultTable",
		Root:    "..",
		Content: map[string]string{
			"bench":   resultTable(r),
			"details": detailTable(r),
		},
	}.Check(t)
}

// resultTable renders the rate and the times of each figure, and its ratio to its baseline.
func resultTable(r report) string {
	var b strings.Builder
	m, s := r.Machine, r.Settings
	fmt.Fprintf(&b, "\nA machine with %d cores, PostgreSQL %s, Temporal %s; %d clients, %d rounds with a window of %g s.\n\n",
		m.Cores, m.PostgreSQL, m.Temporal, s.InFlight, s.Rounds, s.Window)
	b.WriteString("| Name | Measurement | Per second | p50 in ms | p99 in ms | CPU time of each in ms | Baseline | Ratio of the rates | Ratio of the CPU times |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Title, strings.Join(f.cells(), " | "))
	}
	return b.String()
}

// cells renders the measured values of a figure.
func (r result) cells() []string {
	if r.Error != "" {
		return []string{"failed", "–", "–", "–", "–", "–", "–"}
	}
	cells := []string{number(r.Rate), "–", "–", "–", "–", "–", "–"}
	if r.Times != nil {
		cells[1], cells[2] = fmt.Sprintf("%.1f", r.Times.P50), fmt.Sprintf("%.1f", r.Times.P99)
	}
	if len(r.CPU) > 0 {
		cells[3] = fmt.Sprintf("%.2f", r.totalCPU())
	}
	if r.Baseline != "" {
		cells[4], cells[5] = "`"+r.Baseline+"`", fmt.Sprintf("%.2f", r.Ratio)
	}
	if r.ByCPU > 0 {
		cells[6] = fmt.Sprintf("%.2f", r.ByCPU)
	}
	return cells
}

// detailTable renders the other values of the figures.
func detailTable(r report) string {
	var b strings.Builder
	b.WriteString("\n| Name | Value of the same measurement | |\n|---|---|---|\n")
	for _, f := range r.Figures {
		for _, d := range f.Details {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, d.Name, number(d.Value))
		}
	}
	return b.String()
}

// number renders a value with one decimal place, or a large one as a whole number.
func number(v float64) string {
	if v >= 1000 {
		return harness.Thousands(int(v + 0.5))
	}
	return fmt.Sprintf("%.1f", v)
}
