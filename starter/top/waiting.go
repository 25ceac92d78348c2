package top

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// waitingGroup is a number of objects that wait for the same party, as GET /operator/v1/waiting lists it.
type waitingGroup struct {
	Party, Name, Host, Label, Hint string
	Objects                        string // kind of the objects
	Count                          int64
	AtLeast                        bool `json:"at_least"`
	Since                          *time.Time
	Longest                        string // argument of `starter why`
	Listed                         bool
}

// isJournal reports whether the objects are journal entries.
func (g waitingGroup) isJournal() bool {
	return slices.Contains([]string{"controller", "entry", "administrator"}, g.Party)
}

// key identifies the group.
func (g waitingGroup) key() string {
	return strings.Join([]string{g.Party, g.Name, g.Host, g.Objects}, "\x00")
}

// waiting is the view of what waits, grouped by the party for which it waits.
func (r reader) waiting() *screen {
	return &screen{
		title: "what waits",
		columns: []column{
			{name: "SINCE", most: 8},
			{name: "FOR", most: 28},
			{name: "WAITING", most: 24, drop: 1},
			{name: "LONGEST", most: 24, drop: 2},
			{name: "WHY"},
		},
		read: r.limited(func(ctx context.Context) (content, error) {
			var answer struct {
				Waiting []waitingGroup
				Cut     bool
			}
			if err := r.API.Do(ctx, "GET", "/operator/v1/waiting", nil, &answer); err != nil {
				return content{}, err
			}
			var words []string
			for _, g := range answer.Waiting {
				words = append(words, g.Longest)
			}
			why := r.explain(ctx, words)
			var c content
			if answer.Cut {
				c.note = "More parties wait."
			}
			for _, g := range answer.Waiting {
				c.rows = append(c.rows, r.group(g, why[g.Longest]))
			}
			return c, nil
		}),
	}
}

// group makes the row of a group. `why` explains the object that waits the longest.
func (r reader) group(g waitingGroup, why explained) row {
	count := plural(g.Count, g.Objects)
	if g.AtLeast {
		count = "at least " + count
	}
	sentence := g.Hint
	if why.sentence != "" {
		sentence = why.sentence
	}
	return row{
		key: g.key(),
		cells: []cell{
			since(g.Since, r.Now()),
			text(g.Label),
			{text: clean(count), order: float64(g.Count)},
			text(firstOf(why.name, g.Longest)),
			text(sentence),
		},
		detail: fmt.Sprintf("%s, for %s. %s: %s", count, g.Label, firstOf(why.name, g.Longest), sentence),
		alarm:  g.Party == "administrator",
		open: func() *screen {
			switch {
			case g.Listed:
				return r.waitingObjects(g)
			case g.Party == "administrator":
				return r.journal("failed")
			case g.isJournal():
				return r.journal("")
			}
			return r.explanation(g.Longest, g.Longest)
		},
	}
}

// waitingObject is an object that waits for a party, as GET /operator/v1/waiting/{party} lists it.
type waitingObject struct {
	Object, Name, Status, Reason string
	Since                        time.Time
	Deadline                     *time.Time
}

// waitingObjects lists the objects that wait for a party.
func (r reader) waitingObjects(g waitingGroup) *screen {
	query := url.Values{"name": {g.Name}, "host": {g.Host}, "limit": {fmt.Sprint(maxRows)}}
	path := "/operator/v1/waiting/" + url.PathEscape(g.Party) + "?" + query.Encode()
	return &screen{
		title: "waiting for " + g.Label,
		columns: []column{
			{name: "SINCE", most: 8},
			{name: "OBJECT", most: 30},
			{name: "STATUS", most: 10, drop: 1},
			{name: "WHY"},
		},
		read: r.limited(func(ctx context.Context) (content, error) {
			var page struct {
				Objects []waitingObject
				Next    *string
			}
			if err := r.API.Do(ctx, "GET", path, nil, &page); err != nil {
				return content{}, err
			}
			slices.SortStableFunc(page.Objects, func(a, b waitingObject) int { return a.Since.Compare(b.Since) })
			var words []string
			for _, o := range page.Objects {
				words = append(words, o.Object)
			}
			why := r.explain(ctx, words)
			var c content
			if page.Next != nil {
				c.note = fmt.Sprintf("More than these wait, %d at most are shown.", maxRows)
			}
			for _, o := range page.Objects {
				c.rows = append(c.rows, r.object(o, why[o.Object].sentence))
			}
			return c, nil
		}),
	}
}

// object makes the row of an object that waits.
func (r reader) object(o waitingObject, sentence string) row {
	kind, id, _ := strings.Cut(o.Object, "/")
	name := kind + " " + firstOf(o.Name, id)
	sentence = firstOf(sentence, o.Reason)
	detail := name + " (" + o.Object + "): " + firstOf(sentence, o.Status)
	if o.Deadline != nil {
		detail += " Deadline: " + o.Deadline.Local().Format(time.RFC3339) + "."
	}
	return row{
		key:    o.Object,
		cells:  []cell{since(&o.Since, r.Now()), text(name), text(o.Status), text(sentence)},
		detail: detail,
		alarm:  o.Deadline != nil && r.Now().After(*o.Deadline),
		open:   func() *screen { return r.explanation(o.Object, name) },
	}
}
