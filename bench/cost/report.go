package main

import (
	"fmt"
	"io"

	"berth/bench/harness"
)

// reportedSettings are the settings that influence the results.
type reportedSettings struct {
	Clients int     `json:"clients"`
	Warmup  float64 `json:"warmup_seconds"`
	Window  float64 `json:"window_seconds"`
	Rounds  int     `json:"rounds"`
	// number of cores of the servers with which the costs were measured; 0: the whole machine
	Reference float64 `json:"reference_cores"`
}

// section is the key of the report in the JSON file.
const section = "costs"

// report is the value of `section` in the JSON file.
type report struct {
	Machine  harness.Machine  `json:"machine"`
	Settings reportedSettings `json:"settings"`
	// The most cores that were busy in the second before a measurement, with other work than the measurement.
	Busy float64 `json:"busy_cores_before_measurements"`
	// why no limit could be set; empty: the predictions were compared with measurements
	Unlimited string             `json:"no_limit_because,omitempty"`
	Idle      map[string]float64 `json:"idle_cores"`
	Results   []result           `json:"operations"`
}

// result is the result of one operation.
type result struct {
	Name   string             `json:"name"`
	Title  string             `json:"title"`
	Extent string             `json:"extent"`      // what is measured
	Cost   map[string]float64 `json:"cpu_ms_each"` // with the reference number of cores, in all rounds
	// each round with the reference number of cores
	Reference []measured `json:"reference"`
	Checks    []check    `json:"limits,omitempty"`
}

// measured is the result of one measurement.
type measured struct {
	Count int                `json:"count"`
	Rate  float64            `json:"per_second"`
	Used  float64            `json:"server_cores"` // that the servers have used
	Cost  map[string]float64 `json:"cpu_ms_each"`
}

// check compares the prediction with the measurements of all rounds in which the servers together had a
// number of cores.
type check struct {
	Cores     float64 `json:"cores"`
	Predicted float64 `json:"predicted_per_second"`
	Error     float64 `json:"error"` // of the prediction, as a share of the measured rate
	// the lowest and the highest rate of a round
	Lowest  float64 `json:"lowest_per_second"`
	Highest float64 `json:"highest_per_second"`
	measured
}

// measuredIn returns the result of a measurement.
func measuredIn(idle map[string]float64, s harness.Sample) measured {
	return measured{
		Count: s.Count,
		Rate:  s.Rate(),
		Used:  harness.Ratio(harness.SumOfParts(s.CPU.SecondsOfParts(), harness.Servers), s.Seconds),
		Cost:  newCostModel(idle, s).cost,
	}
}

// model returns the model of an operation.
func (r report) model(of result) costModel { return costModel{idle: r.Idle, cost: of.Cost} }

const (
	costFormat      = "\n%-20s CPU time of one operation\n"
	partFormat      = "  %-22s %8.2f ms\n"
	referenceFormat = "  reference: %8.1f/s with %.2f cores\n"
	checkFormat     = "  %4g cores: predicted %8.1f/s, measured %8.1f/s (%.1f to %.1f) with %.2f cores, error %+.0f %%\n"
)

// printHead prints the machine and the settings.
func (r report) printHead(w io.Writer) {
	r.Machine.PrintHead(w, fmt.Sprintf("%d clients, %d rounds of windows of %gs after a warm-up of %gs",
		r.Settings.Clients, r.Settings.Rounds, r.Settings.Window, r.Settings.Warmup))
	if r.Unlimited != "" {
		fmt.Fprintf(w, "No prediction is compared with a measurement: %s.\n", r.Unlimited)
	}
}

// print prints the result of one operation.
func (r result) print(w io.Writer) {
	fmt.Fprintf(w, costFormat, r.Name)
	for _, p := range harness.Parts {
		fmt.Fprintf(w, partFormat, p.Name, r.Cost[p.Name])
	}
	for _, m := range r.Reference {
		fmt.Fprintf(w, referenceFormat, m.Rate, m.Used)
	}
	for _, c := range r.Checks {
		fmt.Fprintf(w, checkFormat, c.Cores, c.Predicted, c.Rate, c.Lowest, c.Highest, c.Used, 100*c.Error)
	}
}
