package main

import (
	"fmt"
	"io"
	"slices"

	"berth/bench/harness"
)

// section is the key of the report in the JSON file.
const section = "growth"

// report is the value of `section` in the JSON file.
type report struct {
	Machine  harness.Machine `json:"machine"`
	Settings settings        `json:"settings"`
	Sizes    []sizeResult    `json:"sizes"`
	Curves   []curve         `json:"curves"`
}

// sizeResult is what was measured of one size. A failed size has the error, and what was measured before.
type sizeResult struct {
	Size  int    `json:"size"`
	Error string `json:"error,omitempty"`
	// duration of each part of the measurement
	Seconds       map[string]float64 `json:"seconds"`
	DatabaseBytes int64              `json:"database_bytes,omitempty"`
	Idle          idleResult         `json:"idle"`
	AllRoles      processResult      `json:"all_roles"` // the process of the idle period
	API           processResult      `json:"api"`       // the process that answered the requests
	// cores that other programs of the machine used while the client sent the requests
	OtherCores float64       `json:"other_cores"`
	Routes     []routeResult `json:"routes,omitempty"`
}

// processResult is the start and the memory of a process of berth.
type processResult struct {
	Ready      float64 `json:"ready_seconds"`
	StartBytes int64   `json:"resident_bytes_when_ready"`
	EndBytes   int64   `json:"resident_bytes_at_end"`
}

// idleResult is what the processes do while no client sends requests.
type idleResult struct {
	Ports int `json:"ports"`
	// seconds from the start of the process until all rows were compared with Temporal, and all usages with
	// the allocations
	FirstComparison float64            `json:"first_comparison_seconds"`
	FirstUsage      float64            `json:"first_usage_comparison_seconds"`
	Seconds         float64            `json:"seconds"`                // duration of the measured period
	Sweep           float64            `json:"sweep_seconds"`          // mean
	Comparisons     float64            `json:"comparisons_per_minute"` // of all rows with Temporal
	RowsRead        float64            `json:"rows_read_per_minute"`   // with index entries
	CPU             map[string]float64 `json:"cpu_seconds_per_minute"`
}

// routeResult is the time of the requests of a route, in milliseconds, and the rows and index entries that
// PostgreSQL reads for one of them.
type routeResult struct {
	Name  string  `json:"name"`
	Count int     `json:"count,omitempty"`
	P50   float64 `json:"p50_ms,omitempty"`
	P99   float64 `json:"p99_ms,omitempty"`
	Reads float64 `json:"rows_read,omitempty"`
	// the same by table, for the tables with at least one read for each request
	ReadsOf map[string]float64 `json:"rows_read_of,omitempty"`
}

// routeOf returns the result of a route; nil: there is none.
func (s sizeResult) routeOf(name string) *routeResult {
	for i := range s.Routes {
		if s.Routes[i].Name == name {
			return &s.Routes[i]
		}
	}
	return nil
}

// addRoute returns the result of a route, which it adds if there is none.
func (s *sizeResult) addRoute(name string) *routeResult {
	if s.routeOf(name) == nil {
		s.Routes = append(s.Routes, routeResult{Name: name})
	}
	return s.routeOf(name)
}

// add adds the result of a size, or replaces an earlier one of the same size.
func (r *report) add(s sizeResult) {
	i := slices.IndexFunc(r.Sizes, func(e sizeResult) bool { return e.Size == s.Size })
	if i < 0 {
		r.Sizes = append(r.Sizes, s)
	} else {
		r.Sizes[i] = s
	}
	r.Curves = curvesOf(r.Sizes)
}

// print prints a line for each curve.
func (r report) print(w io.Writer) {
	r.Machine.PrintHead(w, fmt.Sprintf("%d requests of each route after %d",
		r.Settings.Requests, r.Settings.Warmup))
	fmt.Fprintf(w, "\n%-44s", "")
	for _, s := range r.Sizes {
		fmt.Fprintf(w, " %16s", harness.Thousands(s.Size))
	}
	fmt.Fprintf(w, "  %7s\n", "ratio")
	for _, c := range r.Curves {
		fmt.Fprintf(w, "%-44s", c.Name)
		for i := range c.Values {
			fmt.Fprintf(w, " %16s", c.cell(i))
		}
		fmt.Fprintf(w, "  %7.2f  %s\n", c.Ratio, c.verdict())
	}
	for _, s := range r.Sizes {
		if s.Error != "" {
			fmt.Fprintf(w, "FAILED: %s\n", s.Error)
		}
	}
}
