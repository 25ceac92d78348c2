package resource

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// Runs is the cli.Resource for the runs that compare the controller with berth's rows: full syncs,
// recoveries, audits and repairs.
var Runs = &cli.Resource{
	Name:           "odl",
	Path:           "/journal/v1/runs",
	SingularKey:    "run",
	PluralKey:      "runs",
	IDKey:          "id",
	NameKey:        "id",
	IsID:           cli.Digits.MatchString,
	IgnoresFilters: true,
	Parameters:     []string{"before", "limit"},
	PageParameter:  "before",
	Columns:        []string{"id", "kind", "state", "actor", "reason", "note", "created_at", "finished_at"},
}

const repairHelp = `Without --plan the command runs an audit first and uses its findings as the plan. --dry-run only prints the plan and
its number. A repair does exactly what the plan says; it skips and lists objects that have changed since the audit.`

// runPollInterval is the interval between two reads of a run's state.
const runPollInterval = 500 * time.Millisecond

// followLimits limit how long a command follows a run.
type followLimits struct{ total, stall *time.Duration }

// followFlags declares the flags of followLimits. The parameter `run` names the run.
func followFlags(f *pflag.FlagSet, run string) followLimits {
	return followLimits{
		cli.TimeoutFlag(f, 30*time.Minute, "stop following after this time; the "+run+" continues"),
		f.Duration(
			"stall-timeout",
			2*time.Minute,
			"stop following if the "+run+" makes no progress for this time",
		),
	}
}

// startRunCommand makes the command that starts a run, for example a full sync, and waits until the run ends.
func startRunCommand(kind string) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		reason := f.String("reason", "", "reason, stored with the run")
		limits := followFlags(f, "run")
		return func(ctx context.Context, s *cli.Session, _ []string) error {
			o, err := followRun(ctx, s, cli.Object{"kind": kind, "reason": *reason}, limits)
			if err != nil {
				return err
			}
			return s.Output.PrintObject(o, Runs.Columns)
		}
	}
}

// followRun starts a run, for example a full sync, and prints the progress of the run to stderr until the run
// ends. A run makes no progress if, for example, no workflows run.
func followRun(
	ctx context.Context,
	s *cli.Session,
	body cli.Object,
	limits followLimits,
) (cli.Object, error) {
	var o cli.Object
	if err := s.API.Do(ctx, "POST", Runs.Path, body, &o); err != nil {
		return nil, err
	}
	o = Runs.Unwrap(o)
	id := fmt.Sprint(o["id"])
	ctx, cancel := context.WithTimeout(ctx, *limits.total)
	defer cancel()
	tick := time.NewTicker(runPollInterval)
	defer tick.Stop()
	printed, progressed := "", time.Now()
	for {
		if sentence := cli.Cell(o["sentence"]); sentence != printed {
			printed = sentence
			fmt.Fprintln(s.Stderr, sentence)
		}
		switch o["state"] {
		case "done":
			return o, nil
		case "failed":
			return nil, cli.Errorf(cli.ExitOther, "`starter odl show "+id+"` shows more.", "%s", printed)
		}
		select {
		case <-ctx.Done():
			return nil, cli.Errorf(
				cli.ExitWait,
				"It continues; `starter odl show "+id+"` shows its progress.",
				"run %s has not ended",
				id,
			)
		case <-tick.C:
		}
		next, err := Runs.Get(ctx, s, id)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		switch {
		case err == nil && next["updated_at"] != o["updated_at"]:
			progressed = time.Now()
		case time.Since(progressed) > *limits.stall:
			return nil, cli.Errorf(
				cli.ExitWait,
				"`starter doctor` shows what keeps it. It continues; `starter odl show "+id+"` shows its progress.",
				"run %s has made no progress for %s",
				id,
				*limits.stall,
			)
		}
		if err == nil {
			o = next
		}
	}
}

// listFindings reads all pages of the findings of an audit.
func listFindings(ctx context.Context, s *cli.Session, id string) ([]cli.Object, error) {
	var all []cli.Object
	for after := ""; ; {
		path := Runs.ObjectPath(id) + "/findings"
		if after != "" {
			path += "?after=" + url.QueryEscape(after)
		}
		var page cli.Object
		if err := s.API.Do(ctx, "GET", path, nil, &page); err != nil {
			return nil, err
		}
		found, _ := cli.Objects(page["findings"])
		if len(found) == 0 {
			return all, nil
		}
		all = append(all, found...)
		last := found[len(found)-1]
		after = fmt.Sprintf("%v/%v", last["object_type"], last["object_id"])
	}
}

var findingColumns = []string{"operation", "object_type", "object_id", "kind", "attributes", "outcome"}

// runAudit runs an audit, and returns the number and the findings of the audit.
func runAudit(ctx context.Context, s *cli.Session, limits followLimits) (string, []cli.Object, error) {
	o, err := followRun(ctx, s, cli.Object{"kind": "audit"}, limits)
	if err != nil {
		return "", nil, err
	}
	id := fmt.Sprint(o["id"])
	found, err := listFindings(ctx, s, id)
	return id, found, err
}

func auditCommand(f *pflag.FlagSet) cli.Action {
	limits := followFlags(f, "audit")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		_, found, err := runAudit(ctx, s, limits)
		if err != nil {
			return err
		}
		return s.Output.PrintList(found, findingColumns[1:5])
	}
}

func repairCommand(f *pflag.FlagSet) cli.Action {
	plan := f.Int64("plan", 0, "number of the audit whose findings are repaired (default: a new audit)")
	dryRun := f.Bool("dry-run", false, "print the plan and change nothing")
	yes := f.Bool("yes", false, "confirm that the command changes the controller's data")
	limits := followFlags(f, "repair")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		if !*dryRun && !*yes {
			return cli.Errorf(
				cli.ExitUsage,
				"Print the plan with --dry-run; repeat with --yes to confirm.",
				"this changes the controller",
			)
		}
		id, err := strconv.FormatInt(*plan, 10), error(nil)
		var found []cli.Object
		if *plan != 0 {
			found, err = listFindings(ctx, s, id)
		} else {
			id, found, err = runAudit(ctx, s, limits)
		}
		if err != nil || *dryRun || len(found) == 0 {
			if err == nil {
				fmt.Fprintf(s.Stderr, "The plan is %s; it has %d steps.\n", id, len(found))
				err = s.Output.PrintList(found, findingColumns[:5])
			}
			return err
		}
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fmt.Errorf("parse the number of the audit run: %w", err)
		}
		if _, err = followRun(ctx, s, cli.Object{"kind": "repair", "plan": number}, limits); err != nil {
			return err
		}
		if found, err = listFindings(ctx, s, id); err != nil {
			return err
		}
		return s.Output.PrintList(found, findingColumns)
	}
}
