package main

import (
	"fmt"
	"strings"
	"testing"

	"berth/bench/benchtest"
	"berth/bench/harness"
	"berth/bench/resultpage"
)

// TestResultTable_EqualsMeasuredResults fails when the tables of results in docs/benchmarks.md differ from
// the measured results. To update the tables, run `go test ./bench -run ResultTable -update`.
func TestResultTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	r := benchtest.Read[report](t, "../"+benchtest.Results, section)
	resultpage.Tables{
		Page:    "docs/benchmarks.md",
		Source:  benchtest.Results,
		Command: "go test ./bench -run ResultTable",
		Root:    "..",
		Content: map[string]string{"bench": resultTable(r), "details": detailTable(r), "parts": partTable(r)},
	}.Check(t)
}

// resultTable renders the rates and times of all measurements.
func resultTable(r report) string {
	var b strings.Builder
	m, s := r.Machine, r.Settings
	fmt.Fprintf(&b, "A machine with %d cores, PostgreSQL %s, Temporal %s; %d clients, %d rounds with a window of %g s.\n\n",
		m.Cores, m.PostgreSQL, m.Temporal, s.InFlight, s.Rounds, s.Window)
	b.WriteString("| Name | Measurement | Per second | p50 | p99 | CPU time of each | Baseline | Ratio of the rates | Ratio of the CPU times |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		if f.Error != "" {
			fmt.Fprintf(&b, "| `%s` | %s | failed | | | | | | |\n", f.Name, f.Title)
			continue
		}
		var p50, p99, cpu, baseline string
		if f.Times != nil {
			p50, p99 = amount(f.Times.P50)+" ms", amount(f.Times.P99)+" ms"
		}
		if total := f.totalCPU(); total > 0 {
			cpu = amount(total) + " ms"
		}
		if f.Baseline != "" {
			baseline = "`" + f.Baseline + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			f.Name, f.Title, amount(f.Rate), p50, p99, cpu, baseline, ratio(f.Ratio), ratio(f.ByCPU))
	}
	return b.String()
}

// detailTable renders the other values of the measurements; the name of each contains its unit.
func detailTable(r report) string {
	var b strings.Builder
	b.WriteString("| Name | Quantity, with its unit | Value |\n|---|---|---|\n")
	for _, f := range r.Figures {
		for _, d := range f.Details {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, d.Name, amount(d.Value))
		}
	}
	return b.String()
}

// partTable renders the CPU time of an operation in each part of the system. A measurement whose operations
// cost less than the table shows is left out.
func partTable(r report) string {
	var b strings.Builder
	b.WriteString("| Name | berth | PostgreSQL of berth | Temporal | PostgreSQL of Temporal | Clients, stubs and others |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		if f.totalCPU() < 0.1 {
			continue
		}
		var berth, others float64
		for part, used := range f.CPU {
			switch {
			case strings.HasPrefix(part, "berth "):
				berth += used
			case part != berthDatabase && part != temporalServer && part != temporalDatabase:
				others += used
			}
		}
		fmt.Fprintf(&b, "| `%s` | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
			f.Name, berth, f.CPU[berthDatabase], f.CPU[temporalServer], f.CPU[temporalDatabase], others)
	}
	return b.String()
}

// Names of parts in result.CPU; those of berth's processes begin with "berth ".
const (
	berthDatabase    = "postgres of berth"
	temporalServer   = "server"
	temporalDatabase = "postgres of temporal"
)

// amount renders a measured value that is not negative: with two digits after the point below 10, with one
// below 1,000, and as a whole number with commas above.
func amount(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 1000:
		return fmt.Sprintf("%.1f", v)
	default:
		return harness.Thousands(int(v + 0.5))
	}
}

// ratio renders a ratio; a measurement without a baseline has the ratio 0.
func ratio(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}
