package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
	"berth/bench/harness"
	"berth/bench/resultpage"
)

// TestGrowthTable_EqualsMeasuredResults fails when the tables of docs/benchmarks.md differ from the measured
// results. To update them, run `go test ./bench/growth -run GrowthTable -update`.
func TestGrowthTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	resultpage.Tables{
		Page:    "docs/benchmarks.md",
		Source:  benchtest.Results,
		Command: "go test ./bench/growth -run GrowthTable",
		Root:    "../..",
		Content: map[string]string{"growth": growthTables(benchtest.Read[report](t, "../../"+benchtest.Results, section))},
	}.Check(t)
}

// TestGrowthTable_CurvesFollowFromTheSizes fails if the results were changed by hand, or are older than the
// bounds in the code.
func TestGrowthTable_CurvesFollowFromTheSizes(t *testing.T) {
	t.Parallel()
	r := benchtest.Read[report](t, "../../"+benchtest.Results, section)
	if d := cmp.Diff(curvesOf(r.Sizes), r.Curves); d != "" {
		t.Errorf("the curves of %s do not follow from its sizes (-from sizes +in the file):\n%s", benchtest.Results, d)
	}
}

// growthTables renders the results: what was measured, the times of the routes, and the other quantities.
func growthTables(r report) string {
	var b strings.Builder
	m, s := r.Machine, r.Settings
	others := 0.0
	for _, one := range r.Sizes {
		others = max(others, one.OtherCores)
	}
	fmt.Fprintf(&b, "\nA machine with %d cores, PostgreSQL %s, Temporal %s; %d requests of each route at each size.\n",
		m.Cores, m.PostgreSQL, m.Temporal, s.Requests)
	fmt.Fprintf(&b, "While the client sent the requests, other programs of the machine used at most %.2f cores.\n", others)
	head, line := "", "|---|"
	for _, one := range r.Sizes {
		head, line = head+" "+harness.Thousands(one.Size)+" |", line+"---|"
	}
	table := func(title, ratio string, unit bool, has func(curve) bool) {
		fmt.Fprintf(&b, "\n| %s |%s %s | Bound | |\n%s---|---|---|\n", title, head, ratio, line)
		for _, c := range r.Curves {
			if has(c) {
				writeRow(&b, c, unit)
			}
		}
	}
	times := func(c curve) bool { return c.P99 != nil }
	rows := func(c curve) bool { return c.Unit == rowsRead }
	table("Time of a request: p50 / p99 in ms", "Largest / smallest p50", false, times)
	table("Rows and index entries that PostgreSQL reads for a request", "Largest / smallest", false, rows)
	table("Quantity", "Largest / smallest", true, func(c curve) bool { return !times(c) && !rows(c) })
	b.WriteString("\n")
	return b.String()
}

// writeRow renders the line of a curve.
func writeRow(b *strings.Builder, c curve, unit bool) {
	title := c.Title
	if unit {
		title += ", " + c.Unit
	}
	fmt.Fprintf(b, "| %s |", title)
	for i := range c.Values {
		fmt.Fprintf(b, " %s |", c.cell(i))
	}
	bound, verdict := "–", "grows by design"
	switch {
	case c.Flat:
		bound, verdict = fmt.Sprintf("%.1f", c.Bound), "flat"
	case c.Bound > 0:
		bound, verdict = fmt.Sprintf("%.1f", c.Bound), "**not flat**"
	}
	fmt.Fprintf(b, " %.2f | %s | %s |\n", c.Ratio, bound, verdict)
}
