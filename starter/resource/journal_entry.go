package resource

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

// JournalEntries is the cli.Resource for the entries of the journal: the changes that berth sends to the
// controller.
var JournalEntries = &cli.Resource{
	Name:          "journal",
	Path:          "/journal/v1/entries",
	SingularKey:   "entry",
	PluralKey:     "entries",
	IDKey:         "seq",
	NameKey:       "seq",
	IsID:          cli.Digits.MatchString,
	PageParameter: "after",
	Columns: []string{
		"seq",
		"operation",
		"object_type",
		"object_id",
		"name",
		"state",
		"attempts",
		"failures",
		"last_error",
	},
}

// postDecision sends the operator's decision on an entry, retry or skip, and prints the entry.
func postDecision(ctx context.Context, s *cli.Session, seq, decision string, body any) error {
	if !cli.Digits.MatchString(seq) {
		return cli.UsageError("%q is not the number of a journal entry", seq)
	}
	var o cli.Object
	if err := s.API.Do(ctx, "POST", JournalEntries.ObjectPath(seq)+"/"+decision, body, &o); err != nil {
		return err
	}
	return s.Output.PrintObject(JournalEntries.Unwrap(o), JournalEntries.Columns)
}

func skipEntry(f *pflag.FlagSet) cli.Action {
	reason := f.String("reason", "", "reason, stored with the entry")
	return cli.RequireYes(f, func(ctx context.Context, s *cli.Session, args []string) error {
		return postDecision(ctx, s, args[0], "skip", cli.Object{"reason": *reason})
	})
}

func retryEntry(*pflag.FlagSet) cli.Action {
	return func(ctx context.Context, s *cli.Session, args []string) error {
		return postDecision(ctx, s, args[0], "retry", nil)
	}
}

func pauseJournal(f *pflag.FlagSet) cli.Action { return postPause(f, "pause") }

func resumeJournal(f *pflag.FlagSet) cli.Action { return postPause(f, "resume") }

// postPause pauses or resumes the journal, and prints the state of the pause.
func postPause(f *pflag.FlagSet, decision string) cli.Action {
	reason := f.String("reason", "", "reason, stored in the audit of pauses")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		var o cli.Object
		if err := s.API.Do(ctx, "POST", "/journal/v1/"+decision, cli.Object{"reason": *reason}, &o); err != nil {
			return err
		}
		pause, ok := o["pause"].(cli.Object)
		if !ok {
			return cli.Errorf(cli.ExitOther, "Is --url a berth API?", "the answer has no pause")
		}
		return s.Output.PrintObject(pause, []string{"paused", "paused_at", "actor", "reason"})
	}
}

// analyzeJournal prints how long entries took to reach the controller.
func analyzeJournal(f *pflag.FlagSet) cli.Action {
	last := f.Int("last", 10_000, "number of entries to analyze, newest first")
	slowest := f.Int("slowest", 10, "number of slowest entries to list")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		var o cli.Object
		query := url.Values{"last": {strconv.Itoa(*last)}, "slowest": {strconv.Itoa(*slowest)}}
		if err := s.API.Do(ctx, "GET", "/journal/v1/analysis?"+query.Encode(), nil, &o); err != nil {
			return err
		}
		analysis, ok := o["analysis"].(cli.Object)
		if !ok {
			return cli.Errorf(cli.ExitOther, "Is --url a berth API?", "the answer has no analysis")
		}
		return s.Output.PrintObject(analysis,
			[]string{"entries", "average", "p50", "p90", "p99", "p999", "attempts", "slowest"})
	}
}
