// Cost measures the CPU time that an operation costs in each part of a deployment: berth's processes with the
// role api and with the roles relay and temporal, berth's PostgreSQL, Temporal, Temporal's PostgreSQL, and
// the client. From these costs cost predicts how many operations a second the servers reach with fewer cores,
// and compares the prediction with measurements, in which a cgroup limits the servers together. At the end
// cost stops all processes that it has started and deletes their files and the cgroup.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"berth/bench/harness"
	"berth/internal/resultfile"
)

func main() { harness.Main("cost", harness.WithStubs(run)) }

// settings holds the values of the command line.
type settings struct {
	stack  harness.Options
	pace   harness.Pace
	rounds int       // how often each operation is measured with each number of cores
	limits []float64 // numbers of cores of the servers for which rates are predicted
	// number of cores of the servers with which the costs are measured; 0: the whole machine
	reference float64
	quiet     time.Duration // how long cost waits for a quiet machine before each measurement
	out       string        // JSON file of the results; empty: none
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	s := settings{stack: harness.Options{Separate: true}}
	var limits string
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&s.pace.Window, "window", 10*time.Second, "measuring time of each operation with each limit")
	flags.DurationVar(&s.pace.Warmup, "warmup", 2*time.Second, "time that an operation runs unmeasured before the window")
	flags.IntVar(&s.pace.InFlight, "clients", 64,
		"number of concurrent clients; a quarter of them send operations with a workflow")
	flags.IntVar(&s.rounds, "rounds", 3, "number of rounds; each round measures an operation once with each number of cores")
	flags.Float64Var(&s.reference, "reference", 1,
		"number of cores to which the servers together are limited when their costs are measured")
	flags.StringVar(&limits, "limits", "0.5,1,2",
		"comma-separated `list` of numbers of cores to which the servers together are limited, to check the predictions")
	flags.DurationVar(&s.quiet, "quiet", 5*time.Second,
		"how long a measurement waits until the processors are idle; 0: not at all")
	flags.StringVar(&s.out, "out", resultfile.Default, "JSON `file` whose key costs gets the results; empty: none")
	s.stack.AddFlags(flags)
	err := harness.ParseFlags(flags, args, func() (err error) {
		switch {
		case s.rounds < 1 || !isLimit(s.reference):
			return errors.New("-rounds must be positive, -reference a number of cores")
		case s.pace.Window <= 0 || s.pace.Warmup < 0 || s.pace.InFlight < 1 || s.quiet < 0:
			return errors.New("-window and -clients must be positive, -warmup and -quiet not negative")
		default:
			s.limits, err = parseLimits(limits)
			return err
		}
	})
	s.stack.Clients = s.pace.InFlight
	return s, err
}

// parseLimits parses a comma-separated list of numbers of cores.
func parseLimits(list string) ([]float64, error) {
	var all []float64
	for text := range strings.SplitSeq(list, ",") {
		cores, err := strconv.ParseFloat(text, 64)
		if err != nil || !isLimit(cores) {
			return nil, fmt.Errorf("-limits: %q is no number of cores", text)
		}
		all = append(all, cores)
	}
	return all, nil
}

// isLimit reports whether the servers can be limited to a number of cores. Linux accepts a hundredth of a
// core or more.
func isLimit(cores float64) bool { return cores >= 0.01 && cores <= 1000 }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	logf := harness.NewProgressLog(stderr)
	limit, unlimited := harness.NewProcessorLimit(harness.CgroupRoot, fmt.Sprint("berth-cost-", os.Getpid()))
	if limit != nil {
		defer func() { err = errors.Join(err, limit.Close()) }()
	}
	st, err := harness.StartStack(ctx, s.stack, logf)
	if err != nil {
		return err
	}
	defer st.Close() // before the cgroup is deleted
	m := measurement{settings: s, stack: st, limit: limit, stdout: stdout, logf: logf}
	m.report.Machine = st.Machine
	m.report.Settings = reportedSettings{
		Clients:   s.pace.InFlight,
		Warmup:    s.pace.Warmup.Seconds(),
		Window:    s.pace.Window.Seconds(),
		Rounds:    s.rounds,
		Reference: s.reference,
	}
	if unlimited != nil {
		m.report.Unlimited = unlimited.Error()
		m.report.Settings.Reference, m.settings.reference, m.settings.limits = 0, 0, nil
	} else if err := limit.AddServers(); err != nil {
		return err
	}
	// The processes of the stack end st.Context if they end too early.
	if err := m.run(st.Context); err != nil {
		return fmt.Errorf("%w%s", harness.FirstCause(st.Context, err), st.ErrorLogTail())
	}
	return nil
}
