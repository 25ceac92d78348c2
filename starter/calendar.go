package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const calendarHelp = `Draws a line for each host and a letter for each lease; a cell with several leases has a *, a free one a dot. Below
stands which lease a letter is. It needs a token that may see hosts.`

// claim is a lease that holds a host for a while.
type claim struct {
	host, lease, name, project, status string
	start, end                         time.Time
}

var claimColumns = []string{"letter", "lease", "project_id", "status", "start_date", "end_date"}

// allocationsOfHosts is who has each host when.
var allocationsOfHosts = &noun{name: "allocation", path: "/reservation/v1/os-hosts/allocations", many: "allocations", id: "resource_id"}

// window is what a calendar shows: so many cells from one instant to another.
type window struct {
	from, until time.Time
	cells       int
}

func calendar(f *pflag.FlagSet) action {
	from := f.String("from", "now", "its begin: "+dateHelp)
	length := f.String("for", "1d", "how much it shows, as 12h or 7d")
	zone := f.String("zone", "Local", "time zone of the dates, as UTC, Europe/Paris or +02:00")
	width := f.Int("width", 72, "cells of the chart")
	return func(ctx context.Context, s *session, _ []string) error {
		w, err := windowOf(*from, *length, *zone, *width, time.Now())
		if err != nil {
			return err
		}
		names, claims, err := claims(ctx, s, w)
		if err != nil {
			return err
		}
		if s.out.format != "table" {
			all := make([]object, len(claims))
			for i, c := range claims {
				all[i] = w.row(c, "")
				all[i]["host"], all[i]["lease_id"] = c.host, c.lease
				delete(all[i], "letter")
			}
			return s.out.value(all)
		}
		return w.draw(s.out, names, claims)
	}
}

func windowOf(from, length, zone string, cells int, now time.Time) (window, error) {
	const narrowest, widest = 12, 1000
	where, err := zoneOf(zone)
	if err != nil {
		return window{}, err
	}
	date, err := instantAt(from, now)
	if err != nil {
		return window{}, err
	}
	begin, err := startOf(fmt.Sprint(date), now)
	if err != nil {
		return window{}, usage("--from: %q is not a time such as %s", from, dateHelp)
	}
	d, err := duration(length)
	switch {
	case err != nil:
		return window{}, err
	case d < time.Minute:
		return window{}, usage("--for must be a minute or more")
	case cells < narrowest || cells > widest:
		return window{}, usage("--width must be from %d to %d", narrowest, widest)
	}
	begin = begin.In(where).Truncate(time.Second)
	return window{begin, begin.Add(d), cells}, nil
}

// claims are the hosts by name, and who holds them within the window, by host and time.
func claims(ctx context.Context, s *session, w window) (names []string, all []claim, err error) {
	byHost, byLease := map[string]string{}, map[string]object{}
	registered, err := hosts.all(ctx, s, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range registered {
		byHost[fmt.Sprint(h["id"])] = hosts.word(h)
		names = append(names, hosts.word(h))
	}
	held, err := leases.all(ctx, s, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range held {
		byLease[fmt.Sprint(l["id"])] = l
	}
	uses, err := allocationsOfHosts.all(ctx, s, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range uses {
		reservations, _ := objects(u["reservations"])
		for _, r := range reservations {
			c := claim{host: byHost[fmt.Sprint(u["resource_id"])], lease: fmt.Sprint(r["lease_id"]), start: answered(r["start_date"]), end: answered(r["end_date"])}
			l, there := byLease[c.lease]
			if !there || !c.start.Before(w.until) || !c.end.After(w.from) {
				continue
			}
			c.name, c.project, c.status = leases.word(l), fmt.Sprint(l["project_id"]), fmt.Sprint(l["status"])
			all = append(all, c)
		}
	}
	slices.Sort(names)
	slices.SortStableFunc(all, func(a, b claim) int {
		return cmp.Or(strings.Compare(a.host, b.host), a.start.Compare(b.start), strings.Compare(a.lease, b.lease))
	})
	return names, all, nil
}

// answered is a date as the API writes it.
func answered(v any) time.Time {
	at, _ := time.Parse("2006-01-02T15:04:05.999999", fmt.Sprint(v))
	return at
}

// draw prints the chart and what its letters mean.
func (w window) draw(p *printer, names []string, claims []claim) error {
	letters := map[string]string{}
	var meaning []object
	for _, c := range claims {
		if letters[c.lease] == "" {
			letters[c.lease] = letter(len(letters))
			meaning = append(meaning, w.row(c, letters[c.lease]))
		}
	}
	rows := make([][]string, len(names))
	for i, name := range names {
		line := strings.Split(strings.Repeat("·", w.cells), "")
		for _, c := range claims {
			if c.host == name {
				w.mark(line, c, letters[c.lease])
			}
		}
		rows[i] = []string{clean(name), strings.Join(line, "")}
	}
	if err := table(p.w, []string{"host", w.axis()}, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.w); err != nil {
		return err
	}
	return p.list(meaning, claimColumns)
}

// mark fills the cells in which a lease has its host, be it for a part of them.
func (w window) mark(line []string, c claim, letter string) {
	for i := range line {
		begins, ends := w.at(i), w.at(i+1)
		switch {
		case !c.start.Before(ends) || !c.end.After(begins):
		case line[i] == "·":
			line[i] = letter
		default:
			line[i] = "*"
		}
	}
}

// at is where a cell begins.
func (w window) at(cell int) time.Time {
	return w.from.Add(time.Duration(float64(w.until.Sub(w.from)) * float64(cell) / float64(w.cells)))
}

// axis dates every eighteenth cell.
func (w window) axis() string {
	const each = 18
	var b strings.Builder
	for i := 0; i < w.cells; i += each {
		fmt.Fprintf(&b, "%-*s", each, w.at(i).Format("01-02 15:04"))
	}
	return b.String() + w.from.Format("(MST)")
}

func (w window) row(c claim, letter string) object {
	date := func(t time.Time) string { return t.In(w.from.Location()).Format(time.RFC3339) }
	return object{"letter": letter, "lease": c.name, "project_id": c.project, "status": c.status, "start_date": date(c.start), "end_date": date(c.end)}
}

// letter tells leases apart, as far as letters go.
func letter(n int) string {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if n < len(all) {
		return all[n : n+1]
	}
	return "#"
}
