package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/contract"
	"berth/internal/journal"
)

// entry reads the page of a journal entry. Its timeline has the entry, the decisions of operators about it,
// and the other entries of the same object.
func (c *handler) entry(ctx context.Context, q query) (any, error) {
	seq, err := strconv.ParseInt(q.path("seq"), 10, 64)
	if err != nil || seq <= 0 {
		return nil, osapi.Fault(http.StatusNotFound, "", "There is no journal entry %s.", q.path("seq"))
	}
	e, blockers, decisions, err := c.Journal.JournalEntry(ctx, seq)
	if err != nil {
		return nil, err
	}
	pause, err := c.Journal.Paused(ctx)
	if err != nil {
		return nil, err
	}
	number := strconv.FormatInt(seq, 10)
	v := objectView{
		Kind:     "Journal entry",
		Name:     number,
		Status:   string(e.State),
		Good:     e.State == journal.Completed,
		Why:      journal.Summary(e) + ": " + journal.Sentence(e, blockers, pause) + ".",
		Temporal: c.temporalURL(contract.JournalID(number)),
		Command:  "starter why journal/" + number,
		Facts:    entryFacts(e),
	}
	for _, w := range journal.WaitingFor(e, blockers, pause) {
		out := wait{For: w.For, Since: w.Since}
		if n := len("journal/"); len(w.For) > n && w.For[:n] == "journal/" {
			out.Path = "/entries/" + w.For[n:]
		}
		v.Waits = append(v.Waits, out)
	}
	v.Waits = v.Waits[:min(len(v.Waits), maxParts)]
	for _, d := range decisions[:min(len(decisions), maxMoments)] {
		v.Timeline = append(
			v.Timeline,
			moment{At: d.At, Part: "journal", Text: fmt.Sprintf("%s by %s: %s", d.Action, d.Actor, d.Reason)},
		)
	}
	if e.TakenAt != nil {
		v.Timeline = append(v.Timeline,
			moment{At: *e.TakenAt, Part: "journal", Text: fmt.Sprintf("attempt %d begins", e.Attempt)})
	}
	if e.RetryAt != nil && e.FinishedAt == nil {
		v.Timeline = append(v.Timeline, moment{At: *e.RetryAt, Part: "journal", Text: "next attempt"})
	}
	if err := c.addJournal(ctx, &v, e.Object.ID); err != nil {
		return nil, err
	}
	v.newestFirst(time.Now())
	return v, nil
}

func entryFacts(e journal.Entry) []fact {
	object := fact{Name: "Object", Value: e.Object.Type + " " + e.Object.ID}
	if e.Object.Type == "port" {
		object.Path = "/ports/" + e.Object.ID
	}
	sender := fact{Name: "Sent by", Value: "its own workflow"}
	if e.SentBy != nil {
		sender = fact{
			Name:  "Sent by",
			Value: fmt.Sprintf("the workflow of entry %d", *e.SentBy),
			Path:  fmt.Sprintf("/entries/%d", *e.SentBy),
		}
	}
	return []fact{
		{Name: "Number", Value: strconv.FormatInt(e.Seq, 10)},
		{Name: "Operation", Value: string(e.Operation)},
		object,
		{Name: "Name", Value: e.Name},
		{
			Name:  "Project",
			Value: e.Project,
		},
		{Name: "Attempts", Value: strconv.Itoa(e.Attempt)},
		{Name: "Failures", Value: strconv.Itoa(e.Failures)},
		sender,
		{Name: "Last error", Value: e.LastError},
	}
}
