package top

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/starter/cli"
	"berth/starter/diagnosis"
	"berth/starter/resource"
)

// The limits of one read.
const (
	readLimit       = 10 * time.Second
	maxRows         = 200 // of one list
	maxSentences    = 25  // objects whose explanations a list contains
	sentencesAtOnce = 4
)

// reader makes the screens. Their functions read the API with the session.
type reader struct{ *cli.Session }

// views returns the screens of the keys 1, 2, ….
func (r reader) views() []*screen {
	return []*screen{r.waiting(), r.hosts(), r.leases(), r.journal("")}
}

// limited returns a function that reads for at most the time readLimit.
func (r reader) limited(
	read func(context.Context) (content, error),
) func(context.Context) (content, error) {
	return func(ctx context.Context) (content, error) {
		ctx, cancel := r.WithTimeout(ctx, readLimit)
		defer cancel()
		return read(ctx)
	}
}

// explanation makes the screen with the text of `starter why WORD`.
func (r reader) explanation(word, title string) *screen {
	return &screen{title: title, read: r.limited(func(ctx context.Context) (content, error) {
		var out bytes.Buffer
		r.RetryTemporal()
		err := diagnosis.Why(ctx, r.Session, &out, word)
		return content{text: out.String()}, err
	})}
}

// explained is an object with its name and the sentence that explains it.
type explained struct{ name, sentence string }

// explain reads the explanations of the first objects of a list. An object without an explanation, for
// example because it is deleted now, is missing in the result.
func (r reader) explain(ctx context.Context, words []string) map[string]explained {
	words = words[:min(len(words), maxSentences)]
	found := make([]explained, len(words))
	var group errgroup.Group
	group.SetLimit(sentencesAtOnce)
	for i, word := range words {
		group.Go(func() error {
			if collection, id, err := resource.ResolveTarget(ctx, r.Session, word); err == nil {
				if o, err := collection.Get(ctx, r.Session, id); err == nil {
					found[i] = explained{collection.DisplayName(o), resource.Sentence(o)}
				}
			}
			return nil
		})
	}
	_ = group.Wait()
	all := map[string]explained{}
	for i, word := range words {
		if found[i].sentence != "" {
			all[word] = found[i]
		}
	}
	return all
}

// text makes a cell that is sorted by its text.
func text(v any) cell { return cell{text: clean(cli.Cell(v))} }

// since makes a cell with the age of a time; the oldest sorts first, and a missing time last.
func since(t *time.Time, now time.Time) cell {
	if t == nil {
		return cell{"-", float64(now.Unix() + 1)}
	}
	return cell{age(now.Sub(*t)), float64(t.Unix())}
}

// instant parses a time of the API. It returns nil if the value is not such a time.
func instant(v any) *time.Time {
	word, _ := v.(string)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.000000", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, strings.TrimSpace(word)); err == nil {
			return &t
		}
	}
	return nil
}

// leases is the view of the leases.
func (r reader) leases() *screen {
	return &screen{
		title: "leases",
		columns: []column{
			{name: "STATUS", most: 14},
			{name: "START", most: 16, drop: 1},
			{name: "END", most: 16, drop: 2},
			{name: "NAME"},
		},
		read: r.limited(func(ctx context.Context) (content, error) {
			all, err := resource.Leases.List(ctx, r.Session, nil)
			if err != nil {
				return content{}, err
			}
			var c content
			for _, o := range all {
				id, name := fmt.Sprint(o["id"]), resource.Leases.DisplayName(o)
				alarm := o["status"] == "ERROR" || o["degraded"] == true
				detail := "Lease " + name + " (" + id + ") is " + cli.Cell(o["status"]) + "."
				if o["degraded"] == true {
					detail += " It is degraded: not all its resources are there."
				}
				c.rows = append(c.rows, row{
					key:    id,
					cells:  []cell{text(o["status"]), date(o["start_date"]), date(o["end_date"]), text(name)},
					detail: detail,
					alarm:  alarm,
					open:   func() *screen { return r.explanation("lease/"+id, "lease "+name) },
				})
			}
			return c, nil
		}),
	}
}

// date makes a cell with a time of the API in the local time zone.
func date(v any) cell {
	t := instant(v)
	if t == nil {
		return text(v)
	}
	return cell{t.Local().Format("2006-01-02 15:04"), float64(t.Unix())}
}

// journalStates has the states of journal entries, the worst first, and the order in which the view reads the
// entries of the state.
var journalStates = []struct{ state, order string }{
	{"failed", "asc"}, {"processing", "asc"}, {"pending", "asc"}, {"completed", "desc"},
}

// journal is the view of the journal. It shows the open entries, the oldest first, and the newest completed
// entries.
func (r reader) journal(filter string) *screen {
	return &screen{
		title:  "journal",
		filter: filter,
		columns: []column{
			{name: "STATE", most: 10},
			{name: "SEQ", most: 10},
			{name: "SINCE", most: 8},
			{name: "FAILED", most: 6, drop: 2},
			{name: "CHANGE", most: 40},
			{name: "LAST ERROR"},
		},
		read: r.limited(func(ctx context.Context) (content, error) {
			var c content
			for rank, s := range journalStates {
				query := url.Values{"state": {s.state}, "order": {s.order}, "limit": {fmt.Sprint(maxRows)}}
				all, err := resource.JournalEntries.List(ctx, r.Session, query)
				if err != nil {
					return content{}, err
				}
				if len(all) == maxRows {
					c.note += fmt.Sprintf("Only %d %s. ", maxRows, s.state)
				}
				for _, o := range all {
					c.rows = append(c.rows, r.entry(o, float64(rank)))
				}
			}
			return c, nil
		}),
	}
}

// entry makes the row of a journal entry.
func (r reader) entry(o cli.Object, rank float64) row {
	seq := fmt.Sprint(o["seq"])
	change := fmt.Sprintf("%v %v %s", o["operation"], o["object_type"], firstOf(o["name"], o["object_id"]))
	detail := fmt.Sprintf("Entry %s (%s) is %v.", seq, change, o["state"])
	if e, _ := o["last_error"].(string); e != "" {
		detail += " Last error: " + e
	}
	return row{
		key: seq,
		cells: []cell{
			{text: clean(cli.Cell(o["state"])), order: rank},
			{text: seq, order: float64(cli.Integer(o["seq"]))},
			since(instant(o["created_at"]), r.Now()),
			{text: clean(cli.Cell(o["failures"])), order: float64(cli.Integer(o["failures"]))},
			text(change),
			text(o["last_error"]),
		},
		detail: detail,
		alarm:  o["state"] == "failed",
		open:   func() *screen { return r.explanation("journal/"+seq, "journal entry "+seq) },
	}
}

// firstOf returns the first text that is not empty.
func firstOf(values ...any) string {
	for _, v := range values {
		if s, _ := v.(string); s != "" {
			return s
		}
	}
	return ""
}

// readBoth reads two lists at the same time. If the token may read only one of them, the note says so.
func readBoth(first, second func() error) (note string, err error) {
	var group errgroup.Group
	var a, b error
	group.Go(func() error { a = first(); return nil })
	group.Go(func() error { b = second(); return nil })
	_ = group.Wait()
	switch {
	case a == nil && b == nil:
		return "", nil
	case a == nil && cli.ExitCode(b) == cli.ExitDenied:
		return problem(b), nil
	case b == nil && cli.ExitCode(a) == cli.ExitDenied:
		return problem(a), nil
	case a != nil && cli.ExitCode(a) != cli.ExitDenied:
		return "", a
	}
	return "", cmp.Or(b, a)
}
