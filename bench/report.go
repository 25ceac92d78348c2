package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"berth/bench/figure"
	"berth/bench/harness"
)

// reportedSettings are the settings that influence the results.
type reportedSettings struct {
	InFlight int     `json:"in_flight"`
	Rounds   int     `json:"rounds"`
	Warmup   float64 `json:"warmup_seconds"`
	Window   float64 `json:"window_seconds"`
}

// result is the result of one figure. A failed figure also has a result, which contains the error.
type result struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Count    int       `json:"count"`
	Seconds  float64   `json:"seconds"`
	Rate     float64   `json:"per_second"`
	Rounds   []float64 `json:"per_second_by_round"`
	Baseline string    `json:"against,omitempty"`
	Ratio    float64   `json:"ratio,omitempty"`
	// the ratio of CPU times, on which other load has less influence
	ByCPU   float64            `json:"ratio_by_cpu,omitempty"`
	ByMean  float64            `json:"ratio_by_mean,omitempty"`
	ByP50   float64            `json:"ratio_by_p50,omitempty"`
	ByP99   float64            `json:"ratio_by_p99,omitempty"`
	Times   *latencies         `json:"times_ms,omitempty"`
	CPU     map[string]float64 `json:"cpu_ms_each,omitempty"`
	Details []harness.Detail   `json:"details,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// latencies summarises the times of the operations, in milliseconds.
type latencies struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// section is the key of the report in the JSON file.
const section = "bench"

// report is the value of `section` in the JSON file.
type report struct {
	Machine  harness.Machine  `json:"machine"`
	Settings reportedSettings `json:"settings"`
	Figures  []result         `json:"figures"`
}

// resultOf adds up the samples of all rounds of a measurement (a figure). If the earlier results contain a
// successful result of the figure's baseline, resultOf also computes the ratio of the figure to its baseline.
func resultOf(f figure.Figure, rounds []harness.Sample, earlier []result) result {
	all := harness.Sum(rounds)
	r := result{
		Name:    f.Name,
		Title:   f.Title,
		Count:   all.Count,
		Seconds: all.Seconds,
		Rate:    all.Rate(),
		CPU:     all.CPUPerOperation(),
	}
	for _, one := range rounds {
		r.Rounds = append(r.Rounds, one.Rate())
	}
	if f.Latencies && len(all.Times) > 0 {
		r.Times = &latencies{
			Count: len(all.Times),
			Mean:  harness.Milliseconds(harness.Mean(all.Times)),
			P50:   harness.Milliseconds(harness.Percentile(all.Times, 50)),
			P99:   harness.Milliseconds(harness.Percentile(all.Times, 99)),
			Max:   harness.Milliseconds(slices.Max(all.Times)),
		}
	}
	if i := slices.IndexFunc(earlier, func(e result) bool { return e.Name == f.Baseline && e.Error == "" }); i >= 0 {
		base := earlier[i]
		r.Baseline = f.Baseline
		r.Ratio = harness.Ratio(r.Rate, base.Rate)
		r.ByCPU = harness.Ratio(base.totalCPU(), r.totalCPU())
		if base.Times != nil && r.Times != nil {
			r.ByMean = harness.Ratio(base.Times.Mean, r.Times.Mean)
			r.ByP50, r.ByP99 = harness.Ratio(base.Times.P50, r.Times.P50), harness.Ratio(base.Times.P99, r.Times.P99)
		}
	}
	return r
}

// totalCPU returns the CPU time of all components, in milliseconds for each operation.
func (r result) totalCPU() float64 {
	var total float64
	for _, used := range r.CPU {
		total += used
	}
	return total
}

func (s settings) reported() reportedSettings {
	return reportedSettings{
		InFlight: s.pace.InFlight,
		Rounds:   s.rounds,
		Warmup:   s.pace.Warmup.Seconds(),
		Window:   s.pace.Window.Seconds(),
	}
}

// rowFormat is the format of each line of the printed table, including the line with the column titles.
const rowFormat = "%-22s %10s  %-30s %7s %12s  %s\n"

// printHead prints the machine, the settings and the column titles of the table.
func (r report) printHead(w io.Writer) {
	r.Machine.PrintHead(w, fmt.Sprintf("%d clients, %d rounds with a window of %gs after a warm-up of %gs",
		r.Settings.InFlight, r.Settings.Rounds, r.Settings.Window, r.Settings.Warmup))
	fmt.Fprintf(w, "\n"+rowFormat, "figure", "per second", "ratio", "by CPU", "CPU ms each", "")
}

// printFigure prints the result of one figure.
func (r report) printFigure(w io.Writer, name string) {
	for _, f := range r.Figures {
		if f.Name == name {
			f.print(w)
		}
	}
}

// print prints the figure's line of the table. Below the figure's line of the table, print prints the
// figure's other values, indented.
func (r result) print(w io.Writer) {
	ofBaseline, byCPU, cpu := "", "", ""
	if r.Baseline != "" {
		ofBaseline = fmt.Sprintf("%.2f of %s", r.Ratio, r.Baseline)
	}
	if r.ByCPU > 0 {
		byCPU = fmt.Sprintf("%.2f", r.ByCPU)
	}
	if len(r.CPU) > 0 {
		cpu = fmt.Sprintf("%.2f", r.totalCPU())
	}
	fmt.Fprintf(w, rowFormat, r.Name, fmt.Sprintf("%.1f", r.Rate), ofBaseline, byCPU, cpu, r.Title)
	if r.Error != "" {
		fmt.Fprintf(w, "    FAILED: %s\n", r.Error)
	}
	if r.Times != nil {
		fmt.Fprintf(w, "    mean %.2f ms, p50 %.2f ms, p99 %.1f ms, max %.1f ms of %d\n",
			r.Times.Mean, r.Times.P50, r.Times.P99, r.Times.Max, r.Times.Count)
	}
	if r.ByP50 > 0 {
		fmt.Fprintf(w, "    ratio by mean %.2f, by p50 %.2f, by p99 %.2f of %s\n",
			r.ByMean, r.ByP50, r.ByP99, r.Baseline)
	}
	for _, d := range r.Details {
		fmt.Fprintf(w, "    %s: %.1f\n", d.Name, d.Value)
	}
	if len(r.CPU) > 1 {
		fmt.Fprint(w, "    CPU ms each:")
		most := func(a, b string) int { return cmp.Compare(r.CPU[b], r.CPU[a]) }
		for _, component := range slices.SortedFunc(maps.Keys(r.CPU), most) {
			fmt.Fprintf(w, " %s %.2f", component, r.CPU[component])
		}
		fmt.Fprintln(w)
	}
}
