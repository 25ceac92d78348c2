// Bench measures what berth's operations cost, for example the creation of a port, a journal entry, a lease
// or an allocation. Bench calls each measurement a figure. Bench also prints the rate of a figure as a ratio
// to the rate of its baseline: the cheapest operation of the same kind, on the same servers, in the same run.
// Bench starts PostgreSQL, a Temporal server that stores its data in this PostgreSQL, stubs of OpenDaylight
// and Nova, and berth's worker program, each as a process of its own. At the end bench stops all processes
// that it has started and deletes their files; only the results remain. Bench fails only if an operation
// fails; it has no limit for rates.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"time"

	"berth/bench/figure"
	"berth/bench/harness"
	"berth/internal/resultfile"
)

func main() { harness.Main("bench", harness.WithStubs(run)) }

// quietTimeout is the time after which a measurement starts although the servers are busy.
const quietTimeout = 90 * time.Second

// settings holds the values of the command line.
type settings struct {
	stack   harness.Options
	pace    harness.Pace
	rounds  int
	figures []figure.Figure
	out     string // JSON file of the results; empty: none
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	var names string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	all := strings.Join(figure.Names(), ", ")
	flags.StringVar(&names, "figures", "",
		"comma-separated `list` of figures; their baselines are added: "+all+" (default all)")
	flags.DurationVar(&s.pace.Window, "window", 8*time.Second, "measuring time of each figure in each round")
	flags.DurationVar(&s.pace.Warmup, "warmup", 2*time.Second,
		"time that each figure runs unmeasured before the window")
	flags.IntVar(&s.pace.InFlight, "in-flight", 16, "number of concurrent clients")
	flags.IntVar(&s.rounds, "rounds", 2, "number of rounds; each round measures every figure once")
	flags.IntVar(&s.stack.Signals, "signals", 10_000, "number of signals sent to one port")
	flags.IntVar(&s.stack.IdlePorts, "idle", 1000, "number of idle ports; 50000 take half an hour")
	flags.StringVar(&s.out, "out", resultfile.Default,
		"JSON `file` whose key bench gets the results after each figure; empty: none")
	s.stack.AddFlags(flags)
	err := harness.ParseFlags(flags, args, func() (err error) {
		switch {
		case s.pace.Window <= 0 || s.pace.Warmup < 0 || s.pace.InFlight < 1 || s.rounds < 1 || s.stack.Signals < 6 || s.stack.IdlePorts < 1:
			return errors.New("-window, -in-flight, -rounds and -idle must be positive, -signals at least 6")
		default:
			s.figures, err = figure.Select(names)
			return err
		}
	})
	s.stack.Clients = s.pace.InFlight
	return s, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	logf := harness.NewProgressLog(stderr)
	r := newRunner(s, stdout, logf,
		func(ctx context.Context) (*harness.Stack, error) { return harness.StartStack(ctx, s.stack, logf) })
	if !s.stack.DevServer {
		r.quiet = func(ctx context.Context) (float64, error) {
			return harness.AwaitQuiet(ctx, quietTimeout, harness.ReadCPUTimes, harness.Pause)
		}
	}
	return r.run(ctx)
}
