package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const demoHelp = `The demo has five parts, and each checks its result: a port that two agents make ACTIVE; the journal entries that reach
the controller in spite of injected faults; a lease that starts and ends on time, to the second; two writers with
the same generation; and the commands that show the results again. Every run uses new names. The demo fails if any check fails.`

// demonstration is one run of the demo.
type demonstration struct {
	*cli.Session
	writer  io.Writer
	started time.Time
	suffix  string // suffix of all names that this run of the demo creates
	part    int

	port           createdPort // created in the first part
	network        string
	subnet         string
	lease          string
	entries        []string // sequence numbers of the journal entries, oldest first
	injectedFaults int      // number of faults injected into the controller
	lastRequest    int64    // number of the last request that the controller got before this run of the demo
}

// createdPort is the port that the first part of the demo creates.
type createdPort struct{ id, name, server string }

func demoCommand(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		if s.Output.Format != "table" {
			return cli.UsageError("the demo prints text only; it does not support --output %s",
				s.Output.Format)
		}
		d := &demonstration{
			Session: s,
			writer:  s.Output.Writer,
			started: time.Now(),
			suffix:  strings.ToLower(rand.Text()[:6]),
		}
		for _, part := range []struct {
			title string
			run   func(context.Context) error
		}{
			{"A port is ACTIVE when all agents have provisioned it", d.runPort},
			{"Each change reaches the controller once and in order", d.runJournal},
			{"A lease starts and ends on time, to the second", d.runLease},
			{"If two writers send the same generation, one write succeeds", d.runGenerations},
			{"Commands and links that show the results again", d.runLinks},
		} {
			d.part++
			fmt.Fprintf(d.writer, "\n%d. %s\n", d.part, part.title)
			if err := part.run(ctx); err != nil {
				return fmt.Errorf("the demo failed after %.3f s in part %d: %w",
					time.Since(d.started).Seconds(), d.part, err)
			}
		}
		fmt.Fprintf(d.writer, "\nAll checks passed in %.1f s.\n", time.Since(d.started).Seconds())
		return nil
	}
}

// lineWidth is the width of the terminal for which the demo breaks its lines.
const lineWidth = 80

// printStep prints one step of the demo: what happened, and the request or event that caused this step. Long
// steps continue on further lines, below the text of the first.
func (d *demonstration) printStep(cause, format string, args ...any) {
	head := fmt.Sprintf("%9.3f s  ", time.Since(d.started).Seconds())
	width := lineWidth - len(head)
	lines := cli.Wrap(cli.Sanitize(fmt.Sprintf(format, args...)), width)
	if arrow := "← " + cli.Sanitize(cause); cause != "" {
		if with := lines[len(lines)-1] + "  " + arrow; cli.Width(with) <= width {
			lines[len(lines)-1] = with
		} else {
			lines = append(lines, cli.Wrap(arrow, width)...)
		}
	}
	for i, line := range lines {
		if i > 0 {
			head = strings.Repeat(" ", len(head))
		}
		fmt.Fprintf(d.writer, "%s%s\n", head, line)
	}
}

// uniqueName returns a name that no other run of the demo uses.
func (d *demonstration) uniqueName(kind string) string { return kind + "-" + d.suffix }

// checkFailed makes the error for a failed check of the demo.
func checkFailed(format string, args ...any) error {
	return cli.Errorf(cli.ExitOther,
		"`starter doctor` checks the services; the worker's log has more.", format, args...)
}

// waitLimit is the maximum time that the demo waits for a result. Results usually take milliseconds.
const waitLimit = time.Minute

// waitUntil calls the function `condition` repeatedly until `condition` returns true or an error. An error
// that says that a service is unavailable, for example because Temporal is slow, ends the wait only after the
// time `limit`. When the time `limit` has passed, waitUntil returns an error that contains the text `what`.
func (d *demonstration) waitUntil(
	ctx context.Context,
	limit time.Duration,
	what string,
	condition func(context.Context) (bool, error),
) error {
	started := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := condition(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && !done && time.Since(started) > limit:
			return cli.Errorf(cli.ExitWait, "`starter doctor` checks the services.",
				"%s: this did not happen within %s", what, limit)
		case err != nil && (cli.ExitCode(err) != cli.ExitUnavailable || time.Since(started) > limit):
			return err
		case done:
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
