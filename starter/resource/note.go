package resource

import (
	"context"
	"net/url"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const noteHelp = `A note tells the workflow of an object that its row has changed. berth sets a note aside if Temporal refuses it several times
for a reason that concerns only this note, for example because the workflow has too many signals. berth retries such a note
every ten minutes, and at once after the next change of the row.`

func listNotes(f *pflag.FlagSet) cli.Action {
	state := f.String("state", "", "list only notes in this state: set-aside or waiting")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		path := "/operator/v1/notes"
		if *state != "" {
			path += "?" + url.Values{"state": {*state}}.Encode()
		}
		var o cli.Object
		if err := s.API.Do(ctx, "GET", path, nil, &o); err != nil {
			return err
		}
		notes, ok := o["notes"].([]any)
		if !ok {
			return cli.Errorf(cli.ExitOther, "Is --url a berth API?", "the answer has no notes")
		}
		list := make([]cli.Object, 0, len(notes))
		for _, n := range notes {
			if n, ok := n.(cli.Object); ok {
				list = append(list, n)
			}
		}
		return s.Output.PrintList(list,
			[]string{"workflow_id", "state", "attempts", "created_at", "next_attempt", "last_error"})
	}
}

func retryNotes(f *pflag.FlagSet) cli.Action {
	all := f.Bool("all", false, "retry all notes that are set aside")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		if *all == (len(args) > 0) {
			return cli.UsageError("name the workflow IDs of the notes, or give --all")
		}
		body := cli.Object{}
		if len(args) > 0 {
			body["workflow_ids"] = args
		}
		var o cli.Object
		if err := s.API.Do(ctx, "POST", "/operator/v1/notes/retry", body, &o); err != nil {
			return err
		}
		return s.Output.PrintMessage(o, "%d notes are due now", cli.Integer(o["retried"]))
	}
}
