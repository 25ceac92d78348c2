package diagnosis

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
	"berth/starter/resource"
)

const portWatchHelp = `Prints a checklist of the entities that block the port, at every change, until the port is ACTIVE or in ERROR. On a terminal
each new checklist replaces the old one.`

// clearScreen moves the cursor of a terminal to the top left corner and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

// checklist lists every party (for example an agent) that has blocked the port since the command port watch
// began.
type checklist []checklistItem

type checklistItem struct {
	party    string
	sentence string // empty once the party does not block the port any more
}

// update returns the checklist after the port was read again. A party is done when the port no longer waits
// for it.
func (l checklist) update(o cli.Object) checklist {
	next := make(checklist, len(l), len(l)+2)
	for i, c := range l {
		next[i] = checklistItem{party: c.party}
	}
	for _, p := range resource.WaitingParties(o) {
		party, at := fmt.Sprint(p["for"]), -1
		for i, c := range next {
			if c.party == party {
				at = i
			}
		}
		if at < 0 {
			next, at = append(next, checklistItem{party: party}), len(next)
		}
		next[at].sentence = resource.PartySentence(p)
	}
	return next
}

// lines returns the lines that show the checklist.
func (l checklist) lines(o cli.Object) []string {
	out := []string{fmt.Sprintf("port %s is %v", resource.Ports.DisplayName(o), o["status"])}
	if reason := resource.StatusReason(o); reason != "" {
		out = append(out, "  [ ] "+reason)
	}
	for _, c := range l {
		if c.sentence == "" {
			out = append(out, "  [x] "+c.party)
			continue
		}
		out = append(out, "  [ ] "+c.party+": "+c.sentence)
	}
	return out
}

// watchPort makes the command that follows a port until the port is ACTIVE.
// While the API is unavailable, the command keeps trying to read the port.
func watchPort(f *pflag.FlagSet) cli.Action {
	every := f.Duration("every", time.Second/2, "interval between two reads")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		if *every < cli.MinInterval {
			return cli.UsageError("--every %s is below the minimum of %s", *every, cli.MinInterval)
		}
		id, err := resource.Ports.Resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		tick := time.NewTicker(*every)
		defer tick.Stop()
		view := portView{session: s}
		for reported := false; ; {
			o, err := resource.Ports.Get(ctx, s, id)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && cli.ExitCode(err) != cli.ExitUnavailable:
				return err
			case err != nil && !reported:
				cli.ReportError(s.Stderr, err)
			case err == nil:
				if err := view.show(o); err != nil || o["status"] == "ACTIVE" {
					return err
				}
				if o["status"] == "ERROR" {
					return cli.Errorf(cli.ExitWait, resource.Blockers(o),
						"port %s is ERROR and will not become ACTIVE", resource.Ports.DisplayName(o))
				}
			}
			reported = err != nil
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}
}

// portView stores what the command port watch has printed about a port.
type portView struct {
	session  *cli.Session
	list     checklist
	lines    []string
	previous cli.Object // last printed document, for JSON and YAML
}

// show prints the port if the port has changed since the last call.
func (v *portView) show(o cli.Object) error {
	if v.session.Output.Format != "table" {
		before := v.previous
		v.previous = o
		if before == nil {
			return v.session.Output.PrintDocument(o)
		}
		if reflect.DeepEqual(before, v.previous) {
			return nil
		}
		return v.session.Output.PrintNextDocument(o)
	}
	v.list = v.list.update(o)
	lines := v.list.lines(o)
	if reflect.DeepEqual(v.lines, lines) {
		return nil
	}
	v.lines = lines
	if terminal, ok := v.session.Output.Terminal(); ok {
		if _, err := io.WriteString(terminal, clearScreen); err != nil {
			return err
		}
	}
	var b strings.Builder
	b.WriteString(v.session.Now().Format("15:04:05.000") + "  ")
	for _, line := range lines {
		b.WriteString(cli.Sanitize(line) + "\n")
	}
	_, err := io.WriteString(v.session.Output.Writer, b.String())
	return err
}
