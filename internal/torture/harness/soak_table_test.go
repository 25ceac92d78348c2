package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/bench/benchtest"
	"berth/bench/resultpage"
)

// TestSoakTable_EqualsMeasuredResults fails when the table of docs/scaling.md differs from the measured
// results. To update the table, run `go test ./internal/torture/harness -run SoakTable -update`.
func TestSoakTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	resultpage.Tables{
		Page:    "docs/scaling.md",
		Source:  benchtest.Results,
		Command: "go test ./internal/torture/harness -run SoakTable",
		Root:    "../../..",
		Content: map[string]string{
			"soak": soakTable(benchtest.Read[soakReport](t, "../../../"+benchtest.Results, soakSection)),
		},
	}.Check(t)
}

// soakTable renders the results of a run.
func soakTable(r soakReport) string {
	var b strings.Builder
	kills := 0
	for _, n := range r.Faults {
		kills += n
	}
	fmt.Fprintf(&b, "%s, %d processes killed, %d acknowledged requests, %d findings.\n",
		time.Duration(r.Seconds*float64(time.Second)), kills, r.Requests, r.Findings)
	fmt.Fprintf(&b, "The 99th percentile of latency was %.1f ms in the first sixth of the run, and %.1f ms in the last.\n\n", r.First, r.Last)
	b.WriteString("| Quantity | Mean | Growth | Standard error | |\n|---|---|---|---|---|\n")
	for _, c := range r.Quantities {
		verdict := "flat"
		switch {
		case c.Grown:
			verdict = "**grows**"
		case slices.Contains(growingRows, c.Name):
			verdict = "grows by design"
		}
		fmt.Fprintf(&b, "| %s | %.1f | %+.1f | %.1f | %s |\n", c.Name, c.Mean, c.Growth, c.Noise, verdict)
	}
	return b.String()
}
