// Failover measures what clients of berth see while PostgreSQL fails over. Clients send requests at a
// constant rate. Failover kills the primary server, later promotes its synchronous standby, and later makes
// the killed server the standby of the other one. It writes how many requests were answered in each interval,
// and counts the acknowledged writes that are not in the rows. At the end failover stops all processes that
// it has started and deletes their files; only the results remain.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"berth/bench/harness"
	"berth/internal/resultfile"
)

func main() { harness.Main("failover", harness.WithStubs(run)) }

// settings holds the values of the command line.
type settings struct {
	stack    harness.Options
	rate     float64       // requests a second of all clients
	before   time.Duration // from the first request to the end of the primary
	outage   time.Duration // from the end of the primary to the promotion of the standby
	after    time.Duration // from the promotion to the return of the killed server
	rest     time.Duration // from the return of the killed server to the last request
	interval time.Duration // for which the answers are counted together
	out      string        // JSON file of the results; empty: none
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	s := settings{stack: harness.Options{Separate: true, Standby: true}}
	flags := flag.NewFlagSet("failover", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Float64Var(&s.rate, "rate", 100, "requests a second of all clients together")
	flags.IntVar(&s.stack.Clients, "clients", 20, "number of concurrent clients")
	flags.DurationVar(&s.before, "before", 10*time.Second, "time from the first request until the primary is killed")
	flags.DurationVar(&s.outage, "outage", 5*time.Second, "time from there until the standby is promoted")
	flags.DurationVar(&s.after, "after", 15*time.Second, "time from there until the killed server comes back")
	flags.DurationVar(&s.rest, "rest", 10*time.Second, "time from there until the last request")
	flags.DurationVar(&s.interval, "interval", 500*time.Millisecond, "interval for which answers are counted together")
	flags.StringVar(&s.out, "out", resultfile.Default, "JSON `file` whose key failover gets the results; empty: none")
	s.stack.AddFlags(flags)
	err := harness.ParseFlags(flags, args, func() error {
		switch {
		case s.rate <= 0 || s.stack.Clients < 1 || s.interval <= 0:
			return errors.New("-rate, -clients and -interval must be positive")
		case min(s.before, s.outage, s.after, s.rest) < 0:
			return errors.New("-before, -outage, -after and -rest must not be negative")
		}
		return nil
	})
	return s, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	logf := harness.NewProgressLog(stderr)
	st, err := harness.StartStack(ctx, s.stack, logf)
	if err != nil {
		return err
	}
	defer st.Close()
	// The processes of the stack end st.Context if they end too early.
	if err := measure(st.Context, s, st, stdout, logf); err != nil {
		return fmt.Errorf("%w%s", harness.FirstCause(st.Context, err), st.ErrorLogTail())
	}
	return nil
}
