// Peer measures berth's Placement API and OpenStack Placement with the same requests, and prints the rates of
// both and their ratio. Peer starts both servers on loopback, each with its own PostgreSQL server: berth's
// worker program with the role api and its default settings, and OpenStack Placement behind uWSGI. Both get
// the same requests, in turn, from the same client. Before the measurements, peer checks that both answer
// each kind of request equally. At the end peer stops the processes that it has started and deletes their
// files.
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

func main() { harness.Main("peer", run) }

// settings holds the values of the command line.
type settings struct {
	Clients   int           `json:"clients"`
	Rounds    int           `json:"rounds"`
	Requests  int           `json:"requests"`  // in each round, to each server; candidates get fewer
	Providers int           `json:"providers"` // resource providers with an inventory
	quiet     time.Duration // how long peer waits for a quiet machine before each measurement
	out       string        // JSON file of the results; empty: none
	worker    string        // path of berth's worker program
	python    string        // path of a Python interpreter with the packages of tools/placement.txt
	dir       string        // parent folder of all temporary files
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("peer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.Clients, "clients", 8, "number of concurrent clients")
	flags.IntVar(&s.Rounds, "rounds", 4, "number of rounds; each round measures every figure once on each server")
	flags.IntVar(&s.Requests, "requests", 800,
		"number of requests of each figure in each round to each server; the figures of candidates send fewer")
	flags.IntVar(&s.Providers, "providers", 1000, "number of resource providers with an inventory")
	flags.DurationVar(&s.quiet, "quiet", 10*time.Second,
		"how long a measurement waits until the processors are idle; 0: not at all")
	flags.StringVar(&s.out, "out", resultfile.Default, "JSON `file` whose key peers gets the results; empty: none")
	flags.StringVar(&s.worker, "worker", "",
		"path of berth's worker `program` (default: in the folder of this program)")
	flags.StringVar(&s.python, "python", "", "path of the `Python` that tools/venv.sh placement prints")
	flags.StringVar(&s.dir, "dir", harness.DiskFolder(),
		"`folder` of the temporary databases; use a disk, not a memory file system")
	err := harness.ParseFlags(flags, args, func() error {
		switch {
		case s.Clients < 1 || s.Rounds < 1 || s.Requests < 1 || s.Providers < 1 || s.quiet < 0:
			return errors.New("-clients, -rounds, -requests and -providers must be positive, -quiet not negative")
		case s.python == "":
			return errors.New("-python is missing; make bench-peers sets it")
		}
		return nil
	})
	if err == nil && s.worker == "" {
		s.worker, err = harness.WorkerProgram()
	}
	return s, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	logf := harness.NewProgressLog(stderr)
	st, err := openStack(ctx, s, logf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	// The processes of the stack end st.ctx if they end too early.
	if err := compare(st.ctx, s, st, stdout, logf); err != nil {
		return fmt.Errorf("%w%s", harness.FirstCause(st.ctx, err), harness.LogTail(st.dir, ""))
	}
	return nil
}

// compare creates the dataset on both servers, checks their answers, measures all figures, and checks the
// answers again.
func compare(
	ctx context.Context,
	s settings,
	st *stack,
	stdout io.Writer,
	logf func(string, ...any),
) error {
	d := dataset{clients: s.Clients, providers: s.Providers}
	logf("creating %d resource providers on both servers", s.Providers)
	if err := d.create(ctx, st.peers); err != nil {
		return err
	}
	check := answerCheck{dataset: d, peers: st.peers}
	if err := check.figures(ctx); err != nil {
		return err
	}
	logf("both servers answer each kind of request equally")
	results := report{Machine: st.machine, Settings: s}
	results.printHead(stdout)
	m := measurement{settings: s, dataset: d, peers: st.peers, logf: logf}
	if err := m.run(ctx); err != nil {
		return err
	}
	if err := check.state(ctx); err != nil {
		return err
	}
	results.Figures, results.Busy = m.results(), m.busiest
	results.print(stdout)
	return resultfile.WriteSection(s.out, section, results)
}
