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
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth/bench/figure"
	"berth/bench/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	var err error
	if len(os.Args) == 2 && os.Args[1] == harness.StubCommand {
		err = harness.ServeStubs(ctx, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errUsage means that the command line is invalid.
var errUsage = errors.New("usage")

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
	flags.StringVar(&s.out, "out", "bench.json",
		"`file` of the results in JSON, rewritten after each figure; empty: none")
	flags.StringVar(&s.stack.Worker, "worker", "",
		"path of berth's worker `program` (default: in the folder of this program)")
	flags.StringVar(&s.stack.Dir, "dir", diskFolder(),
		"`folder` of the temporary databases; use a disk, not a memory file system")
	flags.BoolVar(
		&s.stack.DevServer, "dev-server", false,
		"use Temporal's dev server in memory and small data sets, to test bench itself; the results say nothing about production",
	)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return s, err
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.pace.Window <= 0 || s.pace.Warmup < 0 || s.pace.InFlight < 1 || s.rounds < 1 || s.stack.Signals < 6 || s.stack.IdlePorts < 1:
		err = errors.New("-window, -in-flight, -rounds and -idle must be positive, -signals at least 6")
	default:
		s.figures, err = figure.Select(names)
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w; see bench -h", errUsage, err)
	}
	s.stack.Clients = s.pace.InFlight
	if s.stack.Worker == "" {
		self, err := os.Executable()
		if err != nil {
			return s, err
		}
		s.stack.Worker = filepath.Join(filepath.Dir(self), "worker")
	}
	return s, nil
}

// diskFolder returns /var/tmp if that folder exists, because /tmp is often a memory file system, where a
// commit does not wait for a disk.
func diskFolder() string {
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
		return "/var/tmp"
	}
	return os.TempDir()
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	begin := time.Now()
	logf := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%6.1fs  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	r := newRunner(s, stdout, logf,
		func(ctx context.Context) (*harness.Stack, error) { return harness.StartStack(ctx, s.stack, logf) })
	if !s.stack.DevServer {
		r.quiet = func(ctx context.Context) (float64, error) {
			return harness.AwaitQuiet(ctx, harness.ReadCPUTimes, harness.Pause)
		}
	}
	return r.run(ctx)
}
