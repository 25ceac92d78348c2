package main

import (
	"fmt"
	"strings"
	"testing"

	"berth/bench/benchtest"
	"berth/bench/resultpage"
)

// TestFailoverTable_EqualsMeasuredResults fails when the table of docs/scaling.md differs from the measured
// results. To update the table, run
// `go test ./bench/failover -run FailoverTable -update`.
func TestFailoverTable_EqualsMeasuredResults(t *testing.T) {
	t.Parallel()
	resultpage.Tables{
		Page:    "docs/scaling.md",
		Source:  benchtest.Results,
		Command: "go test ./bench/failover -run FailoverTable",
		Root:    "../..",
		Content: map[string]string{"failover": failoverTable(benchtest.Read[report](t, "../../"+benchtest.Results, section))},
	}.Check(t)
}

// failoverTable renders the results of a failover.
func failoverTable(r report) string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "A machine with %d cores, PostgreSQL %s, Temporal %s; %d clients that together send %g requests a second, three quarters of them writes.\n\n",
		m.Cores, strings.Fields(m.PostgreSQL)[0], m.Temporal, r.Settings.Clients, r.Settings.Rate)
	b.WriteString("| What was measured | Result |\n|---|---|\n")
	row := func(what, format string, values ...any) {
		fmt.Fprintf(&b, "| "+what+" | "+format+" |\n", values...)
	}
	for _, e := range r.Events {
		row(e.Name, "after %.1f s", e.At)
	}
	row("from the end of the primary to the first answer 503", "%.2f s", r.FirstRefusal)
	row("from the promotion to the first acknowledged write that was sent after it", "%.2f s", r.FirstWrite)
	row("longest time that a client waited for an answer", "%.2f s", r.Longest)
	row("requests", "%d", r.Sent)
	row("answers 503, with which the client sends the request again later", "%d", r.Refused)
	row("other failures, for example broken connections", "%d", r.Failed)
	row("acknowledged writes", "%d", r.Acknowledged)
	row("acknowledged writes that are not in the rows afterwards", "%d", r.Lost)
	return b.String()
}
