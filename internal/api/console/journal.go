package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/journal"
	"berth/internal/store/journalstore"
	"berth/internal/text"
)

const (
	// pictured is the maximum number of open entries in one picture of the journal.
	pictured = 60
	// charted is the number of entries in the chart of the delays.
	charted = 200
)

// The size of the picture of the journal, in the units of the SVG.
const (
	nodeWidth, nodeHeight = 190, 44
	columnGap, rowGap     = 70, 14
)

// journalView is the content of the page of the journal.
type journalView struct {
	Paused        *journal.Pause
	Entries       []journalEntry
	Edges         []edge
	Width, Height int
	Oldest        string // age of the oldest open entry of the page
	Next          string // path of the next page; empty: this page is the last
	Delays        []delay
}

// journalEntry is an open entry with its place in the picture.
type journalEntry struct {
	journalstore.OpenEntry
	X, Y    int
	Name    string // short name
	Age     string
	Outside int // number of entries for which the entry waits and that are not in the picture
}

// edge leads from an entry to an entry that waits for it.
type edge struct {
	Path     string // the attribute d of an SVG path
	From, To int64
}

// delay is one point of the chart of the delays.
type delay struct {
	journalstore.Delay
	Text string // duration in words
	Unix int64
}

// journal reads a page of the open entries with their dependencies, and the delays of the newest entries.
func (c *handler) journal(ctx context.Context, q query) (any, error) {
	after := int64(0)
	if s := q.values.Get("after"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return nil, osapi.Fault(http.StatusBadRequest, "",
				"'after' is not the number of a journal entry.")
		}
		after = n
	}
	entries, err := c.Journal.OpenEntries(ctx, after, pictured+1)
	if err != nil {
		return nil, err
	}
	v := journalView{}
	if v.Paused, err = c.Journal.Paused(ctx); err != nil {
		return nil, err
	}
	delays, err := c.Journal.Delays(ctx, charted)
	if err != nil {
		return nil, err
	}
	for _, d := range delays {
		if d.Open { // an exact age would change the page with each rendering
			d.Seconds = math.Floor(d.Seconds/10) * 10
		}
		v.Delays = append(v.Delays, delay{d, fmt.Sprintf("%.2f s", d.Seconds), d.CreatedAt.Unix()})
	}
	slices.SortStableFunc(v.Delays, func(a, b delay) int { return cmp.Compare(a.Unix, b.Unix) })
	if len(entries) > pictured {
		entries = entries[:pictured]
		v.Next = fmt.Sprintf("/journal?after=%d", entries[pictured-1].Seq)
	}
	v.draw(entries, time.Now())
	return v, nil
}

// draw places the entries: an entry is to the right of all entries for which it waits.
func (v *journalView) draw(entries []journalstore.OpenEntry, now time.Time) {
	column, row, place := map[int64]int{}, map[int]int{}, map[int64]*journalEntry{}
	v.Entries = make([]journalEntry, len(entries))
	if len(entries) > 0 {
		v.Oldest = age(now.Sub(entries[0].CreatedAt))
	}
	for i, e := range entries {
		n := &v.Entries[i]
		*n = journalEntry{
			OpenEntry: e,
			Name:      text.Excerpt(e.Object.Type+" "+named(e.Name, e.Object.ID), 24),
			Age:       age(now.Sub(e.CreatedAt)),
		}
		for _, w := range e.WaitsFor {
			if place[w] == nil {
				n.Outside++
				continue
			}
			column[e.Seq] = max(column[e.Seq], column[w]+1)
		}
		n.X = column[e.Seq] * (nodeWidth + columnGap)
		n.Y = row[column[e.Seq]] * (nodeHeight + rowGap)
		row[column[e.Seq]]++
		place[e.Seq] = n
		v.Width, v.Height = max(v.Width, n.X+nodeWidth), max(v.Height, n.Y+nodeHeight)
		for _, w := range e.WaitsFor {
			if from := place[w]; from != nil {
				x1, y1, x2, y2 := from.X+nodeWidth, from.Y+nodeHeight/2, n.X, n.Y+nodeHeight/2
				v.Edges = append(v.Edges, edge{
					fmt.Sprintf(
						"M%d %dC%d %d %d %d %d %d",
						x1, y1, x1+columnGap/2, y1, x2-columnGap/2, y2, x2, y2,
					),
					w,
					e.Seq,
				})
			}
		}
	}
}
