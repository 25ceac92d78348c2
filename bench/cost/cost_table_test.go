package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"berth/bench/benchtest"
	"berth/bench/harness"
	"berth/bench/resultpage"
)

// TestCostTables_EqualMeasuredResults fails when the tables of docs/scaling.md differ from the measured
// results. To update the tables, run
// `go test ./bench/cost -run CostTables -update`.
func TestCostTables_EqualMeasuredResults(t *testing.T) {
	t.Parallel()
	r := benchtest.Read[report](t, "../../"+benchtest.Results, section)
	resultpage.Tables{
		Page:    "docs/scaling.md",
		Source:  benchtest.Results,
		Command: "go test ./bench/cost -run CostTables",
		Root:    "../..",
		Content: map[string]string{
			"costs":       costTable(r),
			"predictions": checkTable(r),
			"sizes":       sizeTable(r),
		},
	}.Check(t)
}

// costTable renders the CPU time of each operation in each part.
func costTable(r report) string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "A machine with %d cores, PostgreSQL %s, Temporal %s; %d clients, of which a quarter send operations with a workflow; "+
		"%d rounds with a window of %g s for each measurement.\n",
		m.Cores, strings.Fields(m.PostgreSQL)[0], m.Temporal, r.Settings.Clients, r.Settings.Rounds, r.Settings.Window)
	if r.Settings.Reference > 0 {
		fmt.Fprintf(&b, "The servers together were limited to %s.\n", coresText(r.Settings.Reference))
	}
	if r.Busy == 0 {
		b.WriteString("The run did not check whether other programs used the processors.\n\n")
	} else {
		fmt.Fprintf(&b, "Before the measurements, other work used at most %.2f cores.\n\n", r.Busy)
	}
	b.WriteString("| CPU time in ms |")
	for _, p := range harness.Servers {
		b.WriteString(" " + p.Title + " |")
	}
	b.WriteString(" all servers | client |\n|---|" + strings.Repeat("---|", len(harness.Servers)+2) + "\n")
	row := func(title, format string, of map[string]float64) {
		b.WriteString("| " + title + " |")
		for _, p := range harness.Servers {
			fmt.Fprintf(&b, " "+format+" |", of[p.Name])
		}
		all, ofServers := harness.SumOfParts(of, harness.Parts), harness.SumOfParts(of, harness.Servers)
		fmt.Fprintf(&b, " "+format+" | "+format+" |\n", ofServers, all-ofServers)
	}
	for _, one := range r.Results {
		row(one.Title+": "+one.Extent, "%.2f", one.Cost)
	}
	perSecond := map[string]float64{}
	for name, cores := range r.Idle {
		perSecond[name] = 1000 * cores
	}
	row("each second without load", "%.0f", perSecond)
	return b.String()
}

// checkTable renders the comparison of the predictions with the measurements.
func checkTable(r report) string {
	if r.Unlimited != "" {
		return "This run could not limit the servers, so no prediction is compared with a measurement.\n"
	}
	var b strings.Builder
	b.WriteString("| Operation | Cores of the servers | Predicted: per second | Measured: per second | Rounds from, to | Error of the prediction | Cores used |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, one := range r.Results {
		for _, c := range one.Checks {
			fmt.Fprintf(&b, "| %s | %g | %s | %s | %s, %s | %+.0f %% | %.2f |\n",
				one.Title, c.Cores, perSecond(c.Predicted), perSecond(c.Rate), perSecond(c.Lowest), perSecond(c.Highest), 100*c.Error, c.Used)
		}
	}
	return b.String()
}

// coresText renders a number of cores.
func coresText(cores float64) string {
	if cores == 1 {
		return "one core"
	}
	return fmt.Sprintf("%g cores", cores)
}

// sizes are the numbers of cores of the deployments in sizeTable.
var sizes = []float64{8, 32, 128}

// sizeTable renders what the model says about larger deployments.
func sizeTable(r report) string {
	var b strings.Builder
	b.WriteString("| Operation | Cores of all servers | Per second |")
	for _, p := range harness.Servers {
		b.WriteString(" " + p.Title + " |")
	}
	b.WriteString(" Most cores | Largest PostgreSQL |\n|---|---|---|" + strings.Repeat("---|", len(harness.Servers)+2) + "\n")
	for _, one := range r.Results {
		m := r.model(one)
		for _, cores := range sizes {
			rate := m.rate(cores)
			fmt.Fprintf(&b, "| %s | %g | %s |", one.Title, cores, perSecond(twoDigits(rate)))
			for _, p := range harness.Servers {
				fmt.Fprintf(&b, " %.1f |", m.cores(p, rate))
			}
			fmt.Fprintf(&b, " %s | %s |\n", m.bottleneck(harness.Servers, rate).Title, m.bottleneck(harness.Databases, rate).Title)
		}
	}
	return b.String()
}

// twoDigits rounds a positive rate to two digits, because an extrapolation is not more exact.
func twoDigits(rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(rate))-1)
	return math.Round(rate/unit) * unit
}

// perSecond renders a rate with three digits or more, and with commas between the thousands.
func perSecond(rate float64) string {
	if rate < 100 {
		return fmt.Sprintf("%.1f", rate)
	}
	return harness.Thousands(int(math.Round(rate)))
}
