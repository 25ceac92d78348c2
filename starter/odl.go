package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

const repairHelp = `Without --plan an audit is made first. The plan is printed; --dry-run ends there, and tells the plan's number. A repair
records exactly what the plan says; an object that has changed since is left alone and named.`

// runEvery is how often a run is looked at.
const runEvery = 500 * time.Millisecond

// odlRun starts a run of a kind and follows it to its end.
func odlRun(kind string) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		reason := f.String("reason", "", "why, for those who look at it later")
		limit := timeout(f, 30*time.Minute, "stop following after this; the run goes on")
		return func(ctx context.Context, s *session, _ []string) error {
			o, err := follow(ctx, s, object{"kind": kind, "reason": *reason}, *limit)
			if err != nil {
				return err
			}
			return s.out.show(o, runs.columns)
		}
	}
}

// follow starts a run and says how far it is until it ends.
func follow(ctx context.Context, s *session, body object, limit time.Duration) (object, error) {
	var o object
	if err := s.api.do(ctx, "POST", runs.path, body, &o); err != nil {
		return nil, err
	}
	o = runs.bare(o)
	id := fmt.Sprint(o["id"])
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(runEvery)
	defer tick.Stop()
	said := ""
	for {
		if sentence := cell(o["sentence"]); sentence != said {
			said = sentence
			fmt.Fprintln(s.stderr, sentence)
		}
		switch o["state"] {
		case "done":
			return o, nil
		case "failed":
			return nil, fail(exitOther, "`starter odl show "+id+"` shows more.", "%s", said)
		}
		select {
		case <-ctx.Done():
			return nil, fail(exitWait, "It goes on; `starter odl show "+id+"` shows how far it is.", "run %s is not done", id)
		case <-tick.C:
		}
		next, err := runs.get(ctx, s, id)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if err == nil {
			o = next
		}
	}
}

// findings lists all that an audit found.
func findings(ctx context.Context, s *session, id string) ([]object, error) {
	var all []object
	for after := ""; ; {
		path := runs.at(id) + "/findings"
		if after != "" {
			path += "?after=" + url.QueryEscape(after)
		}
		var page object
		if err := s.api.do(ctx, "GET", path, nil, &page); err != nil {
			return nil, err
		}
		found, _ := objects(page["findings"])
		if len(found) == 0 {
			return all, nil
		}
		all = append(all, found...)
		last := found[len(found)-1]
		after = fmt.Sprintf("%v/%v", last["object_type"], last["object_id"])
	}
}

var findingColumns = []string{"operation", "object_type", "object_id", "kind", "attributes", "outcome"}

// audit makes an audit and returns its number and what it found.
func audit(ctx context.Context, s *session, limit time.Duration) (string, []object, error) {
	o, err := follow(ctx, s, object{"kind": "audit"}, limit)
	if err != nil {
		return "", nil, err
	}
	id := fmt.Sprint(o["id"])
	found, err := findings(ctx, s, id)
	return id, found, err
}

func odlAudit(f *pflag.FlagSet) action {
	limit := timeout(f, 30*time.Minute, "stop following after this; the audit goes on")
	return func(ctx context.Context, s *session, _ []string) error {
		_, found, err := audit(ctx, s, *limit)
		if err != nil {
			return err
		}
		return s.out.list(found, findingColumns[1:5])
	}
}

func odlRepair(f *pflag.FlagSet) action {
	plan := f.Int64("plan", 0, "the number of the audit whose findings are mended, else a new one is made")
	dry := f.Bool("dry-run", false, "print the plan and do nothing")
	yes := f.Bool("yes", false, "do it although it changes the controller")
	limit := timeout(f, 30*time.Minute, "stop following after this; the repair goes on")
	return func(ctx context.Context, s *session, _ []string) error {
		if !*dry && !*yes {
			return fail(exitUsage, "See the plan with --dry-run; repeat with --yes if you mean it.", "this changes the controller")
		}
		id, err := strconv.FormatInt(*plan, 10), error(nil)
		var found []object
		if *plan != 0 {
			found, err = findings(ctx, s, id)
		} else {
			id, found, err = audit(ctx, s, *limit)
		}
		if err != nil || *dry || len(found) == 0 {
			if err == nil {
				fmt.Fprintf(s.stderr, "The plan is %s; it has %d steps.\n", id, len(found))
				err = s.out.list(found, findingColumns[:5])
			}
			return err
		}
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fmt.Errorf("the audit's number: %w", err)
		}
		if _, err = follow(ctx, s, object{"kind": "repair", "plan": number}, *limit); err != nil {
			return err
		}
		if found, err = findings(ctx, s, id); err != nil {
			return err
		}
		return s.out.list(found, findingColumns)
	}
}

// journalAnalyze tells how long entries took.
func journalAnalyze(f *pflag.FlagSet) action {
	last := f.Int("last", 10_000, "look at so many of the newest entries")
	slowest := f.Int("slowest", 10, "list so many of the slowest")
	return func(ctx context.Context, s *session, _ []string) error {
		var o object
		query := url.Values{"last": {strconv.Itoa(*last)}, "slowest": {strconv.Itoa(*slowest)}}
		if err := s.api.do(ctx, "GET", "/journal/v1/analysis?"+query.Encode(), nil, &o); err != nil {
			return err
		}
		analysis, ok := o["analysis"].(object)
		if !ok {
			return fail(exitOther, "Is --url a berth API?", "the answer has no analysis")
		}
		return s.out.show(analysis, []string{"entries", "average", "p50", "p90", "p99", "p999", "attempts", "slowest"})
	}
}
