package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const demoHelp = `Five parts, each on real requests and each checked: a port that two agents make ACTIVE, the journal that mirrors it to
the controller through injected faults, a lease that starts and ends on its second, two writers of one generation, and
where to look for all of it. Names are new in every run. It fails loudly if anything is not as berth promises.`

// stage is one run of the demo.
type stage struct {
	*session
	w     io.Writer
	began time.Time
	run   string // what makes this run's names unique
	part  int

	port    staged // what later parts and the last page refer to
	network string
	subnet  string
	lease   string
	entries []string // journal numbers, oldest first
	faults  int      // that the controller was told to answer with
	before  int64    // number of the controller's last request before this run
}

// staged is the port of the first part.
type staged struct{ id, name, server string }

func demo(*pflag.FlagSet) action {
	return func(ctx context.Context, s *session, _ []string) error {
		if s.out.format != "table" {
			return usage("the demo speaks to people; it has no --output %s", s.out.format)
		}
		d := &stage{session: s, w: s.out.w, began: time.Now(), run: strings.ToLower(rand.Text()[:6])}
		for _, part := range []struct {
			title string
			play  func(context.Context) error
		}{
			{"A port is ACTIVE when every agent has done its part", d.playPort},
			{"The journal mirrors it to the controller, once and in order", d.playJournal},
			{"A lease starts and ends on its second", d.playLease},
			{"Of two writers who read the same generation one wins", d.playRaces},
			{"Where to look", d.playWhere},
		} {
			d.part++
			fmt.Fprintf(d.w, "\n%d. %s\n", d.part, part.title)
			if err := part.play(ctx); err != nil {
				return fmt.Errorf("the demo failed after %.3f s in part %d: %w", time.Since(d.began).Seconds(), d.part, err)
			}
		}
		fmt.Fprintf(d.w, "\nEverything was as promised, in %.1f s.\n", time.Since(d.began).Seconds())
		return nil
	}
}

// step tells what just happened and what caused it.
func (d *stage) step(cause, format string, args ...any) {
	what := clean(fmt.Sprintf(format, args...))
	if cause != "" {
		what += "  ← " + clean(cause)
	}
	fmt.Fprintf(d.w, "%9.3f s  %s\n", time.Since(d.began).Seconds(), what)
}

// name is a name of this run.
func (d *stage) name(kind string) string { return kind + "-" + d.run }

// broken is a promise that was not kept.
func broken(format string, args ...any) error {
	return fail(exitOther, "`starter doctor` checks what berth needs; the worker's log tells the rest.", format, args...)
}

// patience is how long the demo waits for what comes within moments on a machine that is not busy.
const patience = time.Minute

// until looks again and again, quickly, until done or an error; what it waits for is said if it never comes.
func (d *stage) until(ctx context.Context, limit time.Duration, what string, look func(context.Context) (bool, error)) error {
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && !done && time.Since(began) > limit:
			return fail(exitWait, "`starter doctor` checks what berth needs.", "%s: not within %s", what, limit)
		case err != nil || done:
			return err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
