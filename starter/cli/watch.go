package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// MinInterval is the shortest allowed interval between two reads of a command with --watch.
const MinInterval = 10 * time.Millisecond

// Watcher prints a list or an object once. With --watch, Watcher then prints every change of the list or
// object until the user interrupts the command.
type Watcher struct {
	enabled  *bool
	interval *time.Duration
	view     listView // of a list
}

// WatchFlags declares the flags --watch and --every.
func WatchFlags(f *pflag.FlagSet) Watcher {
	return Watcher{
		enabled:  f.BoolP("watch", "w", false, "keep running and print every change, until Ctrl-C"),
		interval: f.Duration("every", time.Second, "interval between the reads of --watch"),
	}
}

// ListFlags declares the flags --watch and --every, and the flags that choose attributes, order and number of
// the objects.
func ListFlags(f *pflag.FlagSet) Watcher {
	w := WatchFlags(f)
	w.view = listViewFlags(f)
	return w
}

// List prints the list of objects that the function `read` returns. With --watch, List then prints every
// change of this list.
func (w Watcher) List(
	ctx context.Context,
	s *Session,
	r *Resource,
	read func(context.Context) ([]Object, error),
) error {
	if *w.enabled && slices.Contains(listFormats, s.Output.Format) {
		return UsageError("--watch prints changes as table, json or yaml, and not as %s", s.Output.Format)
	}
	if *w.enabled && *w.view.limit > 0 {
		return UsageError("--watch prints the changes of all objects; --limit and --watch are mutually exclusive")
	}
	all, err := read(ctx)
	if err != nil {
		return err
	}
	shown, err := w.view.arrange(s, r, slices.Clone(all))
	if err != nil {
		return err
	}
	if err := w.view.print(s, r, shown); err != nil || !*w.enabled {
		return err
	}
	return w.follow(ctx, s, r, r.Columns, all, read)
}

// Show prints the object that the function `read` returns. With --watch, Show then prints every change of
// this object.
func (w Watcher) Show(
	ctx context.Context,
	s *Session,
	r *Resource,
	read func(context.Context) (Object, error),
) error {
	o, err := read(ctx)
	if err != nil {
		return err
	}
	if err := s.Output.PrintObject(o, r.Columns); err != nil || !*w.enabled {
		return err
	}
	return w.follow(ctx, s, r, nil, []Object{o}, func(ctx context.Context) ([]Object, error) {
		o, err := read(ctx)
		return []Object{o}, err
	})
}

// follow calls `read` again after every interval and prints the changes. If the API is unavailable, follow
// prints one message about the outage and keeps calling `read`.
func (w Watcher) follow(
	ctx context.Context,
	s *Session,
	r *Resource,
	keys []string,
	before []Object,
	read func(context.Context) ([]Object, error),
) error {
	if *w.interval < MinInterval {
		return UsageError("--every %s is below the minimum of %s", *w.interval, MinInterval)
	}
	tick := time.NewTicker(*w.interval)
	defer tick.Stop()
	reported := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && ExitCode(err) == ExitUnavailable:
			if !reported {
				ReportError(s.Stderr, err)
			}
			reported = true
			continue
		case err != nil:
			return err
		}
		reported = false
		if err := w.printChanges(s, r, keys, before, now); err != nil {
			return err
		}
		before = now
	}
}

// printChanges prints what changed between two reads. `keys` are the attributes of the objects that
// printChanges compares. If `keys` is empty, `before` and `now` contain a single object, and printChanges
// compares all attributes of this object. In the table format, printChanges prints one line for each object
// that was added, changed or removed; in the formats JSON and YAML, printChanges prints the whole document
// again.
func (w Watcher) printChanges(s *Session, r *Resource, keys []string, before, now []Object) error {
	if s.Output.Format != "table" {
		switch {
		case reflect.DeepEqual(before, now):
			return nil
		case keys == nil:
			return s.Output.PrintNextDocument(now[0])
		}
		return s.Output.PrintNextDocument(now)
	}
	old, fresh := r.byID(before), r.byID(now)
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(fresh)) {
		if was, ok := old[id]; !ok {
			lines = append(lines,
				r.Name+" "+r.DisplayName(fresh[id])+" is new: "+attributeLine(fresh[id], r.Columns))
		} else if d := changedAttributes(was, fresh[id], keys); d != "" {
			lines = append(lines, r.Name+" "+r.DisplayName(fresh[id])+" "+d)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if _, ok := fresh[id]; !ok {
			lines = append(lines, r.Name+" "+r.DisplayName(old[id])+" is deleted")
		}
	}
	stamp := s.Now().Format("15:04:05.000")
	var err error
	for _, l := range lines {
		_, e := fmt.Fprintln(s.Output.Writer, stamp+"  "+Sanitize(l))
		err = errors.Join(err, e)
	}
	return err
}

// byID returns the objects as a map from the ID of an object to the object.
func (r *Resource) byID(all []Object) map[string]Object {
	byID := make(map[string]Object, len(all))
	for _, o := range all {
		byID[fmt.Sprint(o[r.IDKey])] = o
	}
	return byID
}

// changedAttributes lists the attributes that changed, as "KEY: OLD → NEW". changedAttributes compares the
// attributes in `keys`, or all attributes if `keys` is empty.
func changedAttributes(was, is Object, keys []string) string {
	if keys == nil {
		both := maps.Clone(was)
		maps.Copy(both, is)
		keys = slices.Sorted(maps.Keys(both))
	}
	var parts []string
	for _, k := range keys {
		if !reflect.DeepEqual(was[k], is[k]) {
			parts = append(parts, k+": "+Cell(was[k])+" → "+Cell(is[k]))
		}
	}
	return strings.Join(parts, ", ")
}

func attributeLine(o Object, columns []string) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, c+" "+Cell(o[c]))
	}
	return strings.Join(parts, ", ")
}
