// Growth measures how berth's cost grows with the number of rows: the times of the main routes, memory, the
// size of the database, the start, and the work of an idle berth. For each size growth starts PostgreSQL, a
// Temporal server, stubs of OpenDaylight and Nova, and berth's worker program, fills the database, and
// measures. At the end growth stops all processes that it has started and deletes their files; only the
// results remain.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"berth/bench/harness"
	"berth/internal/resultfile"
)

func main() { harness.Main("growth", harness.WithStubs(run)) }

// run measures each of the sizes that the command line names.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	return measureSizes(ctx, s, stdout, harness.NewProgressLog(stderr))
}

// settings holds the values of the command line.
type settings struct {
	Requests int     `json:"requests"` // measured requests of each route
	Warmup   int     `json:"warmup"`   // requests of each route before the measured ones
	Idle     float64 `json:"idle_seconds"`
	// maximum number of ports while berth is idle, because the start of an execution for each takes long
	IdlePorts int      `json:"idle_ports"`
	Parts     []string `json:"parts"`
	sizes     []int
	out       string // JSON file of the results; empty: none
	stack     harness.Options
}

// Parts of the measurement of a size.
const (
	idlePart   = "idle"   // a process without clients
	routesPart = "routes" // the times of requests
	readsPart  = "reads"  // the rows that requests read
)

var parts = []string{idlePart, routesPart, readsPart}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var sizes, list string
	var idle time.Duration
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&sizes, "sizes", "1000,10000,100000,1000000",
		"comma-separated `list` of sizes, in ascending order: numbers of providers, ports, completed entries and ended leases")
	flags.IntVar(&s.Requests, "requests", 200, "number of measured requests of each route")
	flags.IntVar(&s.Warmup, "warmup", 20, "number of requests of each route before the measured ones")
	flags.DurationVar(&idle, "idle", 30*time.Second, "time for which the idle processes are measured")
	flags.IntVar(&s.IdlePorts, "idle-ports", 200_000, "maximum number of ports while the processes are idle")
	flags.StringVar(&list, "parts", strings.Join(parts, ","), "comma-separated `list` of the parts that are measured")
	flags.StringVar(&s.out, "out", resultfile.Default,
		"JSON `file` whose key growth gets the results after each part of a size; empty: none")
	s.stack.AddFlags(flags)
	err := harness.ParseFlags(flags, args, func() (err error) {
		switch {
		case s.Requests < 1 || s.Warmup < 0 || idle <= 0 || s.IdlePorts < 1:
			return errors.New("-requests, -idle and -idle-ports must be positive, -warmup not negative")
		default:
			s.Parts = strings.Split(list, ",")
			for _, p := range s.Parts {
				if !slices.Contains(parts, p) {
					return fmt.Errorf("-parts: unknown part %q", p)
				}
			}
			// no request may change the object of another one
			if s.sizes, err = harness.ParseAscending(sizes, shares*(s.Requests+s.Warmup+countedRequests)); err != nil {
				return fmt.Errorf("-sizes: %w", err)
			}
			return nil
		}
	})
	s.Idle, s.stack.Clients = idle.Seconds(), 1
	return s, err
}

// measureSizes measures the sizes one after the other, and writes all results so far after each
// part of a size. The failure of a size ends the measurement of this size only.
func measureSizes(ctx context.Context, s settings, stdout io.Writer, logf func(string, ...any)) error {
	r := report{Settings: s}
	var failed []error
	for _, n := range s.sizes {
		m := &measurement{settings: s, size: n, logf: logf}
		m.publish = func() error {
			r.add(m.result)
			if m.servers != nil {
				r.Machine = m.servers.Machine
			}
			return resultfile.WriteSection(s.out, section, r)
		}
		logf("%s: begin", harness.Thousands(n))
		err := m.run(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			err = fmt.Errorf("size %d: %w", n, err)
			m.result.Error = err.Error()
			failed = append(failed, err)
			logf("%v", err)
		}
		if err := m.publish(); err != nil {
			return err
		}
	}
	r.print(stdout)
	return errors.Join(failed...)
}
