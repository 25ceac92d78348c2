// Hosts measures whether berth keeps up with the agents of many hosts. For each number of hosts it starts
// PostgreSQL, a Temporal server, stubs of OpenDaylight and Nova, and berth's worker program. The L2 agent of
// each host sends its heartbeats, and the servers of the cloud get new ports, as often as on a real cloud of
// this size. At the end hosts stops all processes that it has started and deletes their files; only the
// results remain.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"berth/bench/harness"
	"berth/internal/resultfile"
)

func main() { harness.Main("hosts", harness.WithStubs(run)) }

// settings holds the values of the command line.
type settings struct {
	stack            harness.Options
	sizes            []int         // numbers of hosts
	interval         time.Duration // between two heartbeats of an agent
	portsPerHostHour float64       // new ports
	clients          int           // concurrent requests, of the heartbeats and of the ports each
	window           time.Duration
	out              string // JSON file of the results; empty: none
	key              string // of the results in the file
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	s := settings{stack: harness.Options{Separate: true, Clients: 1}}
	var sizes string
	flags := flag.NewFlagSet("hosts", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&sizes, "hosts", "1000,10000,30000,100000", "comma-separated `list` of numbers of hosts, in ascending order")
	flags.DurationVar(&s.interval, "interval", 30*time.Second, "time between two heartbeats of an agent; also the warm-up")
	flags.Float64Var(&s.portsPerHostHour, "ports-per-host-hour", 2, "number of new ports in an hour for each host")
	flags.IntVar(&s.clients, "clients", 64, "maximum number of heartbeats, and of new ports, that are sent at the same time")
	flags.DurationVar(&s.window, "window", time.Minute, "measuring time of each number of hosts, after the warm-up")
	flags.StringVar(&s.out, "out", resultfile.Default,
		"JSON `file` that gets the results after each number of hosts; empty: none")
	flags.StringVar(&s.key, "key", section, "`key` of the results in the file; it begins with "+section)
	s.stack.AddFlags(flags)
	err := harness.ParseFlags(flags, args, func() (err error) {
		switch {
		case s.interval <= 0 || s.window <= 0 || s.clients < 1:
			return errors.New("-interval, -window and -clients must be positive")
		case s.portsPerHostHour < 0.001 || s.portsPerHostHour > 1e6:
			return errors.New("-ports-per-host-hour must be between 0.001 and 1,000,000")
		case !strings.HasPrefix(s.key, section):
			return errors.New("-key must begin with " + section)
		default:
			s.sizes, err = harness.ParseAscending(sizes, 1)
			if err == nil && s.sizes[len(s.sizes)-1] > maxHosts {
				err = fmt.Errorf("at most %d hosts", maxHosts)
			}
			if err != nil {
				return fmt.Errorf("-hosts: %w", err)
			}
			return nil
		}
	})
	return s, err
}

// maxHosts is the maximum number of hosts: the interval between two heartbeats must not become 0.
const maxHosts = 1_000_000

// run measures the sizes one after the other, each on new servers. After each size, run prints its result and
// writes all results so far to the JSON file.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	logf := harness.NewProgressLog(stderr)
	r := newReport(s)
	for _, hosts := range s.sizes {
		logf("%d hosts: begin", hosts)
		one, machine, err := measureSize(ctx, s, hosts, logf)
		if err != nil {
			return fmt.Errorf("%d hosts: %w", hosts, err)
		}
		if r.Machine == (harness.Machine{}) {
			r.Machine = machine
			r.printHead(stdout)
		}
		one.print(stdout)
		r.Sizes = append(r.Sizes, one)
		if err := resultfile.WriteSection(s.out, s.key, r); err != nil {
			return err
		}
	}
	return nil
}
