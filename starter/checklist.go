package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const watchHelp = `Shows who blocks the port and who has done its part, whenever that changes, until the port is ACTIVE or cannot become so any
more. On a terminal the list stays in its place.`

// wipe puts the cursor of a terminal to the top of an empty screen.
const wipe = "\x1b[H\x1b[2J"

// checklist is who was seen to block a port.
type checklist []check

type check struct {
	who  string
	says string // empty when it blocks the port no longer
}

// with is the list after a look at the port: whoever is not named any more is done.
func (l checklist) with(o object) checklist {
	next := make(checklist, len(l), len(l)+2)
	for i, c := range l {
		next[i] = check{who: c.who}
	}
	for _, p := range waitingFor(o) {
		who, at := fmt.Sprint(p["for"]), -1
		for i, c := range next {
			if c.who == who {
				at = i
			}
		}
		if at < 0 {
			next, at = append(next, check{who: who}), len(next)
		}
		next[at].says = said(p)
	}
	return next
}

// said is the API's sentence on a party that an object waits for.
func said(p object) string {
	if sentence, _ := p["sentence"].(string); sentence != "" {
		return sentence
	}
	return fmt.Sprintf("it waits for %v", p["for"])
}

// waitingFor are the parties that the API says an object waits for.
func waitingFor(o object) []object {
	reason, _ := o[because].(object)
	all, _ := objects(reason["waiting"])
	return all
}

// besides is what else keeps a port from being ACTIVE.
func besides(o object) string {
	explained, _ := o[because].(object)
	reason, _ := explained["reason"].(string)
	return reason
}

// blockers are all that keeps an object from what it should be, a line each.
func blockers(o object) string {
	var lines []string
	if reason := besides(o); reason != "" {
		lines = append(lines, clean(reason))
	}
	for _, p := range waitingFor(o) {
		lines = append(lines, clean(said(p)))
	}
	if len(lines) == 0 {
		return clean(why(o))
	}
	return strings.Join(lines, "\n  ")
}

// lines are the list for people.
func (l checklist) lines(o object) []string {
	out := []string{fmt.Sprintf("port %s is %v", ports.word(o), o["status"])}
	if reason := besides(o); reason != "" {
		out = append(out, "  [ ] "+reason)
	}
	for _, c := range l {
		if c.says == "" {
			out = append(out, "  [x] "+c.who)
			continue
		}
		out = append(out, "  [ ] "+c.who+": "+c.says)
	}
	return out
}

// watchPort follows a port on its way to ACTIVE. The API may be away meanwhile.
func watchPort(f *pflag.FlagSet) action {
	every := f.Duration("every", time.Second/2, "how often to look")
	return func(ctx context.Context, s *session, args []string) error {
		if *every < 10*time.Millisecond {
			return usage("--every %s is too often", *every)
		}
		id, err := ports.resolve(ctx, s, args[0])
		if err != nil {
			return err
		}
		tick := time.NewTicker(*every)
		defer tick.Stop()
		seen := sight{s: s}
		for lost := false; ; {
			o, err := ports.get(ctx, s, id)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && exitCode(err) != exitUnavailable:
				return err
			case err != nil && !lost:
				report(s.stderr, err)
			case err == nil:
				if err := seen.show(o); err != nil || o["status"] == "ACTIVE" {
					return err
				}
				if o["status"] == "ERROR" {
					return fail(exitWait, blockers(o), "port %s is ERROR and will not become ACTIVE", ports.word(o))
				}
			}
			lost = err != nil
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// sight is what the user has seen of a port.
type sight struct {
	s      *session
	list   checklist
	lines  []string
	before []object // the port, for machines
}

// show prints what is new about the port.
func (v *sight) show(o object) error {
	if v.s.out.format != "table" {
		before := v.before
		v.before = []object{o}
		if before == nil {
			return v.s.out.value(o)
		}
		return watcher{}.again(v.s, true, before, v.before)
	}
	v.list = v.list.with(o)
	lines := v.list.lines(o)
	if reflect.DeepEqual(v.lines, lines) {
		return nil
	}
	v.lines = lines
	var b strings.Builder
	if terminal(v.s.out.w) {
		b.WriteString(wipe)
	}
	b.WriteString(time.Now().Format("15:04:05.000") + "  ")
	for _, line := range lines {
		b.WriteString(clean(line) + "\n")
	}
	_, err := io.WriteString(v.s.out.w, b.String())
	return err
}

// terminal tells whether somebody looks at what is written there.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
