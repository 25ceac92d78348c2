package main

import (
	"fmt"

	"berth/bench/harness"
)

// flatRatio is the bound of the curves that must not grow: the value of the largest size may be that many
// times the value of the smallest. A value that grows with the number of rows grows by the ratio of the
// sizes, which is 1,000 for a thousand and a million rows. The bound leaves room for deeper indexes and for
// the noise of the machine.
const flatRatio = 1.5

// hostRatio is the bound of requests that read whether each host has future leases, or a limited number of
// them. The smallest size has fewer leases than hosts, so these requests grow a little before they are flat.
const hostRatio = 3

// curve is a measured value by size.
type curve struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Group string `json:"group"` // picture
	Unit  string `json:"unit"`
	// values by size: for a route the median; null: not measured
	Values []*float64 `json:"values"`
	P99    []*float64 `json:"p99,omitempty"`
	// the value of the largest measured size divided by that of the smallest
	Ratio float64 `json:"ratio"`
	Bound float64 `json:"bound,omitempty"` // maximum of the ratio; 0: none, because the value grows by design
	Flat  bool    `json:"flat"`            // the ratio is within the bound
}

// curvesOf returns the curves of the sizes.
func curvesOf(sizes []sizeResult) []curve {
	var all []curve
	for _, r := range routes {
		c := curve{Name: r.name, Title: r.title, Group: r.group, Unit: "ms", Bound: r.bound}
		for _, s := range sizes {
			p50, p99 := s.timesOf(r.name)
			c.Values, c.P99 = append(c.Values, p50), append(c.P99, p99)
		}
		all = append(all, c.judged())
	}
	for _, r := range routes {
		if r.request == nil {
			continue
		}
		c := curve{Name: "rows-" + r.name, Title: r.title, Unit: rowsRead, Bound: r.bound}
		for _, s := range sizes {
			c.Values = append(c.Values, s.readsOf(r.name))
		}
		all = append(all, c.judged())
	}
	for _, q := range quantities {
		c := curve{Name: q.name, Title: q.title, Group: q.group, Unit: q.unit, Bound: q.bound}
		for _, s := range sizes {
			c.Values = append(c.Values, measured(q.value(s)))
		}
		all = append(all, c.judged())
	}
	return all
}

// timesOf returns the median and the 99th percentile of a route; nil: not measured.
func (s sizeResult) timesOf(route string) (p50, p99 *float64) {
	if r := s.routeOf(route); r != nil {
		return measured(r.P50), measured(r.P99)
	}
	return nil, nil
}

// rowsRead is the unit of the curves of the rows that a request reads.
const rowsRead = "rows"

// readsOf returns the rows and index entries that a request of a route reads; nil: not counted.
func (s sizeResult) readsOf(route string) *float64 {
	if r := s.routeOf(route); r != nil {
		return measured(r.Reads)
	}
	return nil
}

// measured returns nil for 0, which means that a part of the measurement has not run.
func measured(value float64) *float64 {
	if value == 0 {
		return nil
	}
	return &value
}

// judged returns the curve with its ratio.
func (c curve) judged() curve {
	var first, last *float64
	for _, v := range c.Values {
		if v == nil {
			continue
		}
		if first == nil {
			first = v
		}
		last = v
	}
	if first != nil {
		c.Ratio = harness.Ratio(*last, *first)
	}
	c.Flat = c.Bound > 0 && c.Ratio > 0 && c.Ratio <= c.Bound
	return c
}

// verdict says whether the curve is within its bound.
func (c curve) verdict() string {
	switch {
	case c.Ratio == 0:
		return "not measured"
	case c.Bound == 0:
		return "grows"
	case c.Flat:
		return "flat"
	default:
		return fmt.Sprintf("NOT FLAT, the bound is %.1f", c.Bound)
	}
}

// cell renders the values of the i-th size.
func (c curve) cell(i int) string {
	if c.Values[i] == nil {
		return "–"
	}
	if c.P99 != nil {
		return fmt.Sprintf("%.1f / %.1f", *c.Values[i], *c.P99[i])
	}
	return number(*c.Values[i])
}

// number renders a number with three significant digits, or as an integer.
func number(v float64) string {
	switch {
	case v >= 100:
		return harness.Thousands(int(v + 0.5))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// quantity is a measured value that is no time of a route.
type quantity struct {
	name  string
	title string
	group string
	unit  string
	bound float64
	value func(sizeResult) float64
}

const mebibyte = 1 << 20

// quantities lists the curves besides those of the routes.
var quantities = []quantity{
	{
		name:  "database",
		title: "size of the database",
		group: database,
		unit:  "MiB",
		value: func(s sizeResult) float64 { return float64(s.DatabaseBytes) / mebibyte },
	},
	{
		name:  "database-each",
		title: "size of the database, for each provider with its port, entry and leases",
		group: database,
		unit:  "kB",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return harness.Ratio(float64(s.DatabaseBytes)/1000, float64(s.Size)) },
	},
	{
		name:  "api-ready",
		title: "start of a process with the role `api` until `/readyz`",
		group: process,
		unit:  "s",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return s.API.Ready },
	},
	{
		name:  "all-ready",
		title: "start of a process with the roles `api`, `relay` and `temporal` until `/readyz`",
		group: process,
		unit:  "s",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return s.AllRoles.Ready },
	},
	{
		name:  "api-memory",
		title: "memory of a process with the role `api` when it is ready",
		group: process,
		unit:  "MiB",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return float64(s.API.StartBytes) / mebibyte },
	},
	{
		name:  "api-memory-used",
		title: "memory of a process with the role `api` after the requests",
		group: process,
		unit:  "MiB",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return float64(s.API.EndBytes) / mebibyte },
	},
	{
		name:  "all-memory",
		title: "memory of a process with all roles after an idle period",
		group: process,
		unit:  "MiB",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return float64(s.AllRoles.EndBytes) / mebibyte },
	},
	{
		name:  "idle-ports",
		title: "ports and their open executions in the idle period",
		unit:  "ports",
		value: func(s sizeResult) float64 { return float64(s.Idle.Ports) },
	},
	{
		name:  "comparison",
		title: "from the start of a process until it has compared all rows with Temporal",
		group: idle,
		unit:  "s",
		value: func(s sizeResult) float64 { return s.Idle.FirstComparison },
	},
	{
		name:  "usage-comparison",
		title: "from the start of a process until it has compared all inventories with the allocations",
		group: idle,
		unit:  "s",
		value: func(s sizeResult) float64 { return s.Idle.FirstUsage },
	},
	{
		name:  "idle-comparisons",
		title: "comparisons of all rows with Temporal, in a minute",
		unit:  "1/min",
		value: func(s sizeResult) float64 { return s.Idle.Comparisons },
	},
	{
		name:  "idle-cpu",
		title: "CPU time of the idle process with all roles, in a minute",
		group: idle,
		unit:  "s",
		value: func(s sizeResult) float64 { return s.Idle.CPU[harness.ComponentBerth+harness.DefaultRoles] },
	},
	{
		name:  "idle-cpu-postgres",
		title: "CPU time of PostgreSQL for the idle process, in a minute",
		group: idle,
		unit:  "s",
		value: func(s sizeResult) float64 { return s.Idle.CPU[harness.ComponentPostgresBerth] },
	},
	{
		name:  "idle-rows",
		title: "rows and index entries that the idle process reads, in a minute",
		unit:  "1/min",
		value: func(s sizeResult) float64 { return s.Idle.RowsRead },
	},
	{
		name:  "sweep",
		title: "one sweep for lost workflows and old rows",
		group: idle,
		unit:  "s",
		bound: flatRatio,
		value: func(s sizeResult) float64 { return s.Idle.Sweep },
	},
}
