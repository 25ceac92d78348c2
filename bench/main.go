// Bench measures berth against its neighbours: what a port, a journal entry or an allocation costs, as a ratio to
// the cheapest thing of the same kind on the same servers in the same run. It starts PostgreSQL, the Temporal
// server on it, stand-ins for OpenDaylight and Nova, and berth's worker as it is shipped, each a process of its
// own, and leaves nothing behind but its results. It asserts no figure: it fails when something goes wrong.
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
)

// mainVariable makes a test binary behave as the program itself.
const mainVariable = "BERTH_TEST_BENCH_MAIN"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	var err error
	if len(os.Args) == 2 && os.Args[1] == standInCommand {
		err = serveStandIns(ctx, os.Stdout)
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

// errUsage means that the command line is wrong.
var errUsage = errors.New("usage")

// settings are what the command line says.
type settings struct {
	pace      pace
	rounds    int
	signals   int // to one port
	idle      int // ports
	figures   []figure
	out       string // file of the results in JSON
	worker    string // program
	dir       string // where everything lives meanwhile
	devServer bool
}

func parse(args []string, trouble io.Writer) (settings, error) {
	var s settings
	var names string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(trouble)
	flags.StringVar(&names, "figures", "", "comma-separated `list` of figures, with those that they are compared with: "+strings.Join(figureNames(), ", ")+" (default all)")
	flags.DurationVar(&s.pace.Window, "window", 8*time.Second, "how long each figure is measured in a round")
	flags.DurationVar(&s.pace.Warmup, "warmup", 2*time.Second, "how long it runs before that")
	flags.IntVar(&s.pace.InFlight, "in-flight", 16, "operations at the same time")
	flags.IntVar(&s.rounds, "rounds", 2, "rounds of all figures: neighbours in time are compared")
	flags.IntVar(&s.signals, "signals", 10_000, "signals to one port")
	flags.IntVar(&s.idle, "idle", 1000, "ports that are open and idle; 50000 take half an hour")
	flags.StringVar(&s.out, "out", "bench.json", "`file` of the results in JSON; empty: none")
	flags.StringVar(&s.worker, "worker", "", "berth's worker `program` (default: the one beside this program)")
	flags.StringVar(&s.dir, "dir", disk(), "`folder` in which everything lives meanwhile; a disk, not memory")
	flags.BoolVar(&s.devServer, "dev-server", false, "run Temporal's dev server in memory: for trying the harness, the figures mean nothing")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return s, err
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.pace.Window <= 0 || s.pace.Warmup < 0 || s.pace.InFlight < 1 || s.rounds < 1 || s.signals < 6 || s.idle < 1:
		err = errors.New("-window, -in-flight, -rounds and -idle must be positive, -signals at least 6")
	default:
		s.figures, err = choose(names)
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w; see bench -h", errUsage, err)
	}
	if s.worker == "" {
		self, err := os.Executable()
		if err != nil {
			return s, err
		}
		s.worker = filepath.Join(filepath.Dir(self), "worker")
	}
	return s, nil
}

// disk is where files outlive a reboot, so that waiting for the disk means something.
func disk() string {
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
		return "/var/tmp"
	}
	return os.TempDir()
}

func run(ctx context.Context, args []string, out, trouble io.Writer) error {
	s, err := parse(args, trouble)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	begin := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(trouble, "%6.1fs  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	st, err := openStack(ctx, s, fail, say)
	if err != nil {
		return firstCause(ctx, err)
	}
	results, err := measureAll(ctx, s, st, say)
	var where machine
	if err == nil {
		where, err = inspect(ctx, st)
	}
	if err = firstCause(ctx, err); err != nil {
		err = fmt.Errorf("%w%s", err, st.troubles())
	}
	st.close()
	if err != nil {
		return err
	}
	r := report{Machine: where, Settings: s.shown(), Figures: results}
	r.print(out)
	if s.out == "" {
		return nil
	}
	return r.write(s.out)
}

// firstCause is why ctx ended, if it did: errors that follow from it tell nobody more.
func firstCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
