package main

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

// watcher prints once, or again whenever something changed until the user has seen enough.
type watcher struct {
	on    *bool
	every *time.Duration
}

func watching(f *pflag.FlagSet) watcher {
	return watcher{
		on:    f.BoolP("watch", "w", false, "stay and print what changes, until Ctrl-C"),
		every: f.Duration("every", time.Second, "how often --watch looks"),
	}
}

func (w watcher) list(ctx context.Context, s *session, n *noun, look func(context.Context) ([]object, error)) error {
	all, err := look(ctx)
	if err != nil {
		return err
	}
	if err := s.out.list(all, n.columns); err != nil || !*w.on {
		return err
	}
	return w.follow(ctx, s, n, n.columns, all, look)
}

func (w watcher) show(ctx context.Context, s *session, n *noun, look func(context.Context) (object, error)) error {
	o, err := look(ctx)
	if err != nil {
		return err
	}
	if err := s.out.show(o, n.columns); err != nil || !*w.on {
		return err
	}
	return w.follow(ctx, s, n, nil, []object{o}, func(ctx context.Context) ([]object, error) {
		o, err := look(ctx)
		return []object{o}, err
	})
}

// follow looks again and again. A neighbour that is away is mentioned once and awaited.
func (w watcher) follow(ctx context.Context, s *session, n *noun, keys []string, before []object, look func(context.Context) ([]object, error)) error {
	if *w.every < 10*time.Millisecond {
		return usage("--every %s is too often", *w.every)
	}
	tick := time.NewTicker(*w.every)
	defer tick.Stop()
	lost := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && exitCode(err) == exitUnavailable:
			if !lost {
				report(s.stderr, err)
			}
			lost = true
			continue
		case err != nil:
			return err
		}
		lost = false
		if err := w.changes(s, n, keys, before, now); err != nil {
			return err
		}
		before = now
	}
}

// changes prints one line for each object that came, went or changed; a machine gets the whole again.
func (w watcher) changes(s *session, n *noun, keys []string, before, now []object) error {
	if s.out.format != "table" {
		return w.again(s, keys == nil, before, now)
	}
	old, fresh := n.index(before), n.index(now)
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(fresh)) {
		if was, ok := old[id]; !ok {
			lines = append(lines, n.name+" "+n.word(fresh[id])+" is new: "+line(fresh[id], n.columns))
		} else if d := difference(was, fresh[id], keys); d != "" {
			lines = append(lines, n.name+" "+n.word(fresh[id])+" "+d)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if _, ok := fresh[id]; !ok {
			lines = append(lines, n.name+" "+n.word(old[id])+" is gone")
		}
	}
	stamp := time.Now().Format("15:04:05.000")
	var err error
	for _, l := range lines {
		_, e := fmt.Fprintln(s.out.w, stamp+"  "+clean(l))
		err = errors.Join(err, e)
	}
	return err
}

// again prints the whole as a document of its own, if anything changed.
func (w watcher) again(s *session, one bool, before, now []object) error {
	if reflect.DeepEqual(before, now) {
		return nil
	}
	if s.out.format == "yaml" {
		if _, err := fmt.Fprintln(s.out.w, "---"); err != nil {
			return err
		}
	}
	if one {
		return s.out.value(now[0])
	}
	return s.out.value(now)
}

func (n *noun) index(all []object) map[string]object {
	byID := make(map[string]object, len(all))
	for _, o := range all {
		byID[fmt.Sprint(o[n.id])] = o
	}
	return byID
}

// difference says which attributes changed, of these keys or of all.
func difference(was, is object, keys []string) string {
	if keys == nil {
		both := maps.Clone(was)
		maps.Copy(both, is)
		keys = slices.Sorted(maps.Keys(both))
	}
	var parts []string
	for _, k := range keys {
		if !reflect.DeepEqual(was[k], is[k]) {
			parts = append(parts, k+": "+cell(was[k])+" → "+cell(is[k]))
		}
	}
	return strings.Join(parts, ", ")
}

func line(o object, columns []string) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, c+" "+cell(o[c]))
	}
	return strings.Join(parts, ", ")
}
