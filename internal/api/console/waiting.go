package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"berth/internal/journal"
	"berth/internal/store/reportstore"
)

// pageSize is the maximum number of objects on one page.
const pageSize = 50

// waitingView is the content of the first page.
type waitingView struct {
	Paused  *journal.Pause // nil: the journal is not paused
	Parties []waitingParty
	Cut     bool // the page shows only the groups that wait the longest
}

// waitingParty is a kind of party with the groups of objects that wait for it.
type waitingParty struct {
	Title, Hint string
	Groups      []waitingGroup
	Total       int64
	AtLeast     bool
}

type waitingGroup struct {
	reportstore.WaitingGroup
	// of the HTML element; it stays the same, so that the element keeps the focus when the page changes
	ID    string
	Label string
	Age   string
	Path  string // page with the waiting objects, below the path of the console; empty: none
	// First is the object that waits the longest; an empty path: it has no page
	First  fact
	Silent string // for how long the agents of the party are silent; empty: they are not
}

// waiting reads what waits, grouped by the party for which it waits.
func (c *handler) waiting(ctx context.Context, _ query) (any, error) {
	groups, err := c.Report.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	v := waitingView{Cut: len(groups) == reportstore.MaxGroups}
	if v.Paused, err = c.Journal.Paused(ctx); err != nil {
		return nil, err
	}
	now := time.Now()
	for _, p := range reportstore.Parties {
		w := waitingParty{Title: p.Title(), Hint: p.Hint()}
		for _, g := range groups {
			if g.Party != p {
				continue
			}
			w.Groups = append(w.Groups, groupView(g, now))
			w.Total += g.Count
			w.AtLeast = w.AtLeast || g.AtLeast
		}
		if w.Groups != nil {
			v.Parties = append(v.Parties, w)
		}
	}
	return v, nil
}

func groupView(g reportstore.WaitingGroup, now time.Time) waitingGroup {
	key := strings.Join([]string{string(g.Party), g.Name, g.Host, g.Objects}, "/")
	w := waitingGroup{
		WaitingGroup: g,
		Label:        g.Party.Label(g.Name, g.Host),
		ID:           "group-" + hashOf([]byte(key)),
		First:        longestObject(g),
	}
	if g.SilentSince != nil {
		w.Silent = age(now.Sub(*g.SilentSince))
	}
	if g.Oldest != nil {
		w.Age = age(now.Sub(*g.Oldest))
	}
	switch {
	case reportstore.HasPages(g.Party):
		w.Path = "/waiting/" + string(g.Party) + "?" + url.Values{"name": {g.Name}, "host": {g.Host}}.Encode()
	case g.Party == reportstore.Temporal:
		w.Path = "/projections"
	case g.Objects == "journal entry":
		w.Path = "/journal"
	}
	return w
}

// longestObject returns the name and the page of the object that waits the longest in a group.
func longestObject(g reportstore.WaitingGroup) fact {
	kind, id, _ := strings.Cut(g.Longest, "/")
	switch {
	case kind == "journal":
		return fact{Value: "entry " + id, Path: "/entries/" + id}
	case reportstore.HasPages(g.Party) && g.LongestName != "":
		return fact{Value: g.LongestName, Path: "/" + kind + "s/" + id}
	}
	return fact{}
}

// age returns a duration in its largest unit, rounded down. The text changes rarely, because each change of a
// page is sent to all viewers.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < 2*time.Minute:
		return "1 minute"
	case d < time.Hour:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// waitingObjectsView is the content of the page of the objects that wait for one party.
type waitingObjectsView struct {
	Label   string
	Host    fact // the host of the party; an empty path: it has no page
	Objects []waitingObject
	Next    string // path of the next page, below the path of the console; empty: this page is the last
}

func (v waitingObjectsView) title() string { return "Objects that wait for " + v.Label }

type waitingObject struct {
	reportstore.WaitingObject
	Path string
	Age  string
}

// waitingObjects reads one page of the objects that wait for a party.
func (c *handler) waitingObjects(ctx context.Context, q query) (any, error) {
	w := reportstore.WaitingQuery{
		Party: reportstore.Party(q.path("party")),
		Name:  q.values.Get("name"),
		Host:  q.values.Get("host"),
		Limit: pageSize,
	}
	var err error
	if w.After, err = q.after(); err != nil {
		return nil, err
	}
	found, next, err := c.Report.WaitingObjects(ctx, w)
	if err != nil {
		return nil, err
	}
	v := waitingObjectsView{Label: w.Party.Label(w.Name, w.Host)}
	if v.Host, err = c.hostLink(ctx, w.Host); err != nil {
		return nil, err
	}
	now := time.Now()
	for _, o := range found {
		v.Objects = append(v.Objects, waitingObject{
			WaitingObject: o,
			Path:          "/" + o.Type + "s/" + o.ID.String(),
			Age:           age(now.Sub(o.Since)),
		})
	}
	if next != [16]byte{} {
		v.Next = "/waiting/" + url.PathEscape(q.path("party")) + "?" + url.Values{
			"name":  {w.Name},
			"host":  {w.Host},
			"after": {next.String()},
		}.Encode()
	}
	return v, nil
}

// hostLink returns the name of a host with the path of its page. The path is empty if leases cannot reserve
// the host.
func (c *handler) hostLink(ctx context.Context, hostname string) (fact, error) {
	link := fact{Value: hostname}
	if hostname == "" {
		return link, nil
	}
	id, err := c.Lease.HostByName(ctx, hostname)
	if id > 0 {
		link.Path = fmt.Sprintf("/hosts/%d", id)
	}
	return link, err
}
