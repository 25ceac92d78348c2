package main

import (
	"fmt"
	"io"
)

// machine describes the machine and the servers of a run.
type machine struct {
	Cores      int    `json:"cores"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	Placement  string `json:"placement"`
	Python     string `json:"python"`
	UWSGI      string `json:"uwsgi"`
}

// section is the key of the report in the JSON file.
const section = "peers"

// report is the value of `section` in the JSON file.
type report struct {
	Machine  machine  `json:"machine"`
	Settings settings `json:"settings"`
	// The most cores that were busy in the second before a measurement, with other work than the measurement.
	Busy    float64  `json:"busy_cores_before_measurements"`
	Figures []result `json:"figures"`
}

// result is the result of one figure on both servers.
type result struct {
	Name      string       `json:"name"`
	Title     string       `json:"title"`
	Berth     serverResult `json:"berth"`
	Placement serverResult `json:"placement"`
	Ratio     float64      `json:"ratio"` // berth's rate divided by that of OpenStack Placement
}

// serverResult is the result of one figure on one server.
type serverResult struct {
	Requests  int       `json:"requests"`
	Rate      float64   `json:"per_second"`
	P50       float64   `json:"p50_ms"`
	P99       float64   `json:"p99_ms"`
	Conflicts int       `json:"conflicts"` // answers 409, after which the client repeated the request
	Rounds    []float64 `json:"per_second_by_round"`
}

const (
	headFormat = "%-18s %6s  %10s %10s %10s  %10s %10s %10s  %s\n"
	rowFormat  = "%-18s %6.1f  %10.1f %10.2f %10.2f  %10.1f %10.2f %10.2f  %d/%d\n"
)

// printHead prints the machine and the settings.
func (r report) printHead(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "%d cores, %s, PostgreSQL %s, OpenStack Placement %s, Python %s, uWSGI %s; "+
		"%d clients, %d rounds, %d requests, %d providers\n",
		m.Cores, m.Go, m.PostgreSQL, m.Placement, m.Python, m.UWSGI,
		r.Settings.Clients, r.Settings.Rounds, r.Settings.Requests, r.Settings.Providers)
}

// print prints a line for each figure.
func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "\n"+headFormat, "figure", "ratio", "berth/s", "p50 ms", "p99 ms", "Placement/s", "p50 ms", "p99 ms",
		"conflicts")
	for _, f := range r.Figures {
		fmt.Fprintf(w, rowFormat, f.Name, f.Ratio, f.Berth.Rate, f.Berth.P50, f.Berth.P99,
			f.Placement.Rate, f.Placement.P50, f.Placement.P99, f.Berth.Conflicts, f.Placement.Conflicts)
	}
}
