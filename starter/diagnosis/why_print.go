package diagnosis

import (
	"errors"
	"fmt"
	"time"

	"berth/internal/contract"
	"berth/starter/cli"
)

// printWhy prints an explanation: the sentence, the parties that the object waits for, and the agents.
func printWhy(p *cli.Printer, now time.Time, e explanation) error {
	if p.Format != "table" {
		return p.PrintDocument(e)
	}
	from := map[string]string{"workflow": "from its workflow", "api": "from the API; " + e.Note, "temporal": "from Temporal"}[e.Source]
	if err := p.PrintMessage(nil, "%s: %s (%s)", e.Object, e.Sentence, from); err != nil {
		return err
	}
	var rows [][]string
	for _, w := range e.Waiting {
		rows = append(rows, []string{w.For, sinceText(w.Since, now), deadlineText(w.Deadline, now)})
	}
	if len(rows) > 0 {
		if err := cli.WriteTable(p.Writer, []string{"waits for", "since", "until"}, rows); err != nil {
			return err
		}
	}
	for _, d := range e.Agents {
		if err := p.PrintMessage(nil, "%s: %s", d.For, d.Sentence); err != nil {
			return err
		}
	}
	for _, a := range e.Attempts {
		if err := p.PrintMessage(nil, "%s", a.sentence(now)); err != nil {
			return err
		}
	}
	return printLastError(p, e.Why)
}

// printLastError prints the last error, the next attempt and the number of ignored reports.
func printLastError(p *cli.Printer, w contract.Why) error {
	var err error
	if w.LastError != "" {
		err = errors.Join(err, p.PrintMessage(nil, "last error: %s", w.LastError))
	}
	if w.NextAttempt != nil {
		err = errors.Join(
			err,
			p.PrintMessage(nil, "next attempt: %s", w.NextAttempt.Local().Format(time.RFC3339)),
		)
	}
	if w.IgnoredReports > 0 {
		err = errors.Join(err, p.PrintMessage(nil, "ignored reports: %d", w.IgnoredReports))
	}
	return err
}

// sinceText formats the time at which an object began to wait, and how long ago that was.
func sinceText(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("15:04:05"), now.Sub(*t).Round(time.Second))
}

// deadlineText formats the deadline in an object's explanation, and for how long the object is overdue.
func deadlineText(t *time.Time, now time.Time) string {
	if t == nil {
		return "no deadline"
	}
	text := t.Local().Format(time.RFC3339)
	if overdue := now.Sub(*t); overdue > 0 {
		text += fmt.Sprintf(" (overdue for %s)", overdue.Round(time.Second))
	}
	return text
}
