package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/text"
)

// The size of the calendar, in the units of the SVG.
const (
	calendarWidth = 1000 // of the window of time
	labelWidth    = 170
	axisHeight    = 28
	laneHeight    = 26
	maxLanes      = 6  // rows of bars of one host
	rowHeight     = 18 // of one host in the overview
)

// detailedHosts is the maximum number of hosts of a page whose picture has one link for each lease. A page
// with more hosts is an overview, so that its size stays small.
const detailedHosts = 25

// calendarSizes are the numbers of hosts that a page of the calendar can show.
var calendarSizes = []int{detailedHosts, 100, 500}

// zooms are the windows of time that the calendar can show, from near to far.
var zooms = []struct {
	name string
	span time.Duration
	step time.Duration // distance of the lines of the grid
	form string        // format of the times at the grid
	unit time.Duration // the shortest free time that counts as a free slot
	slot string        // the unit in words
}{
	{"6 hours", 6 * time.Hour, time.Hour, "15:04", time.Hour, "an hour"},
	{"day", 24 * time.Hour, 3 * time.Hour, "15:04", 3 * time.Hour, "3 hours"},
	{"week", 7 * 24 * time.Hour, 24 * time.Hour, "Mon 2 Jan", 24 * time.Hour, "a day"},
	{"4 weeks", 28 * 24 * time.Hour, 7 * 24 * time.Hour, "2 Jan 2006", 7 * 24 * time.Hour, "a week"},
	{"90 days", 90 * 24 * time.Hour, 14 * 24 * time.Hour, "2 Jan 2006", 7 * 24 * time.Hour, "a week"},
}

// defaultZoom is the index of the zoom without a parameter.
const defaultZoom = 2

// dateForm is the format of the parameter `from`.
const dateForm = "2006-01-02T15:04"

// calendarQuery selects a page of the calendar.
type calendarQuery struct {
	zoom  int       // index in zooms
	from  time.Time // begin of the window
	after int64     // ID of the last host of the previous page
	hosts int       // maximum number of hosts of the page
}

// calendarView is the content of the calendar of leases.
type calendarView struct {
	From, To      time.Time
	Width, Height int
	Hosts         []calendarHost
	Overview      bool   // the picture has one row of the same height for each host
	Slot          string // the shortest free slot in words
	Grid          []gridLine
	Now           int // x of the present time; 0: outside the window
	Links         []fact
	Sizes         []fact // links to pages with other numbers of hosts; an empty path: the present number
	Next          string
	Late          []lateStart
	Double        []doubleBooking
	More          int // late starts and double bookings that the lists leave out
}

type calendarHost struct {
	leasestore.CalendarHost
	Y, Height int
	Bars      []bar
	Shapes    []shape // of the overview
	Hidden    int     // bookings that have no room in the picture
	Rows      []calendarRow
	NextFree  string // the begin of the next free slot in words
	Leases    string // the leases in words
	Free      string // the free intervals in words
}

// calendarRow is a row of the table of the calendar: a booking, or an interval without one.
type calendarRow struct {
	Booking  *leasestore.Booking  // nil: the host is free
	Double   []leasestore.Booking // the leases that are double-booked with this one
	From, To time.Time
}

type bar struct {
	leasestore.Booking
	X, Y, Width int
	Text        string               // as much of the name as the bar has room for
	Double      []leasestore.Booking // the leases that are double-booked with this one
}

// shape is the part of a host's row in the overview that the leases with one status fill.
type shape struct {
	Status lease.Status
	Path   string // the attribute d of an SVG path
}

type gridLine struct {
	X    int
	Text string
}

// calendar reads the calendar of the leases of one page of hosts.
func (c *handler) calendar(ctx context.Context, q query) (any, error) {
	now := time.Now().UTC()
	page, err := readCalendarQuery(q.values, now)
	if err != nil {
		return nil, err
	}
	z := zooms[page.zoom]
	v := calendarView{
		From:     page.from,
		To:       page.from.Add(z.span),
		Width:    labelWidth + calendarWidth,
		Overview: page.hosts > detailedHosts,
		Slot:     z.slot,
		Links:    page.links(),
		Sizes:    page.sizes(),
	}
	hosts, err := c.Lease.HostCalendar(ctx, leasestore.Calendar{
		After: page.after,
		Limit: page.hosts + 1,
		From:  v.From,
		To:    v.To,
	})
	if err != nil {
		return nil, err
	}
	if len(hosts) > page.hosts {
		hosts = hosts[:page.hosts]
		next := page
		next.after = hosts[page.hosts-1].ID
		v.Next = next.path()
	}
	v.Height = axisHeight
	for _, h := range hosts {
		row := v.describe(h, z.unit, now)
		if v.Overview {
			v.drawOverview(&row)
		} else {
			v.draw(&row)
		}
		v.Hosts = append(v.Hosts, row)
		v.Height += row.Height
	}
	v.Late = lateStarts(hosts, now)
	v.shortenLists()
	for at := v.From.Truncate(z.step); at.Before(v.To); at = at.Add(z.step) {
		if !at.Before(v.From) {
			v.Grid = append(v.Grid, gridLine{v.x(at), at.Format(z.form)})
		}
	}
	if now.After(v.From) && now.Before(v.To) {
		v.Now = v.x(now)
	}
	return v, nil
}

// shortenLists leaves at most maxParts late starts and maxParts double bookings.
func (v *calendarView) shortenLists() {
	all := len(v.Late) + len(v.Double)
	v.Late = v.Late[:min(len(v.Late), maxParts)]
	v.Double = v.Double[:min(len(v.Double), maxParts)]
	v.More = all - len(v.Late) - len(v.Double)
}

// readCalendarQuery reads the parameters of the calendar.
func readCalendarQuery(values url.Values, now time.Time) (q calendarQuery, err error) {
	q = calendarQuery{zoom: defaultZoom, from: now.Truncate(24 * time.Hour), hosts: detailedHosts}
	if s := values.Get("zoom"); s != "" {
		q.zoom = -1
		for i, z := range zooms {
			if z.name == s {
				q.zoom = i
			}
		}
		if q.zoom < 0 {
			return q, osapi.Fault(http.StatusBadRequest, "",
				"'zoom' must be '6 hours', 'day', 'week', '4 weeks' or '90 days'.")
		}
	}
	if s := values.Get("from"); s != "" {
		if q.from, err = time.Parse(dateForm, s); err != nil || q.from.Year() < 1970 || q.from.Year() > 9000 {
			return q, osapi.Fault(http.StatusBadRequest, "",
				"'from' must be a time in the form 2030-01-31T10:00.")
		}
	} else if q.zoom == 0 {
		q.from = now.Truncate(time.Hour).Add(-time.Hour)
	}
	if s := values.Get("after"); s != "" {
		if q.after, err = strconv.ParseInt(s, 10, 64); err != nil || q.after < 0 {
			return q, osapi.Fault(http.StatusBadRequest, "", "'after' is not the ID of a host.")
		}
	}
	if s := values.Get("hosts"); s != "" {
		if q.hosts, err = strconv.Atoi(s); err != nil || !slices.Contains(calendarSizes, q.hosts) {
			return q, osapi.Fault(http.StatusBadRequest, "", "'hosts' must be 25, 100 or 500.")
		}
	}
	return q, nil
}

// path returns the path of the page, below the path of the console.
func (q calendarQuery) path() string {
	return "/calendar?" + q.values(url.Values{"from": {q.from.Format(dateForm)}}).Encode()
}

// values adds the parameters of the page to those that say where its window begins.
func (q calendarQuery) values(values url.Values) url.Values {
	values.Set("zoom", zooms[q.zoom].name)
	if q.after > 0 {
		values.Set("after", strconv.FormatInt(q.after, 10))
	}
	if q.hosts != detailedHosts {
		values.Set("hosts", strconv.Itoa(q.hosts))
	}
	return values
}

// links returns the links that move and zoom the window. The window keeps its middle when it zooms.
func (q calendarQuery) links() []fact {
	span := zooms[q.zoom].span
	earlier, later, today := q, q, q
	earlier.from, later.from, today.after = q.from.Add(-span/2), q.from.Add(span/2), 0
	links := []fact{
		{Name: "earlier", Value: "Earlier", Path: earlier.path()},
		{Name: "today", Value: "Today", Path: "/calendar?" + today.values(url.Values{}).Encode()},
		{Name: "later", Value: "Later", Path: later.path()},
	}
	at := func(zoom int) string {
		to := q
		to.zoom, to.from = zoom, q.from.Add((span-zooms[zoom].span)/2).Truncate(time.Hour)
		return to.path()
	}
	if q.zoom > 0 {
		links = append(links,
			fact{Name: "in", Value: "Zoom in to " + zooms[q.zoom-1].name, Path: at(q.zoom - 1)})
	}
	if q.zoom < len(zooms)-1 {
		links = append(links,
			fact{Name: "out", Value: "Zoom out to " + zooms[q.zoom+1].name, Path: at(q.zoom + 1)})
	}
	return links
}

// sizes returns the links to pages with other numbers of hosts, which begin with the same host.
func (q calendarQuery) sizes() (links []fact) {
	for _, hosts := range calendarSizes {
		link := fact{Name: strconv.Itoa(hosts), Value: fmt.Sprintf("%d hosts a page", hosts)}
		if hosts != q.hosts {
			to := q
			to.hosts = hosts
			link.Path = to.path()
		}
		links = append(links, link)
	}
	return links
}

// x returns the place of a time; a time outside the window has the place of the nearer end.
func (v *calendarView) x(at time.Time) int {
	part := float64(at.Sub(v.From)) / float64(v.To.Sub(v.From))
	return labelWidth + int(calendarWidth*min(max(part, 0), 1))
}

// draw places the bookings of a host below the hosts that are placed already. Bookings at the same time get
// different lanes.
func (v *calendarView) draw(row *calendarHost) {
	row.Y = v.Height
	var lanes []time.Time // end of the last booking of each lane
	for _, r := range row.Rows {
		if r.Booking == nil {
			continue
		}
		b := *r.Booking
		lane := 0
		for lane < len(lanes) && lanes[lane].After(b.Start) {
			lane++
		}
		if lane == maxLanes {
			row.Hidden++
			continue
		}
		if lane == len(lanes) {
			lanes = append(lanes, b.End)
		}
		lanes[lane] = b.End
		x := v.x(b.Start)
		width := max(v.x(b.End)-x, 3)
		row.Bars = append(row.Bars, bar{
			Booking: b,
			X:       x,
			Y:       row.Y + lane*laneHeight + 3,
			Width:   width,
			Text:    barText(b.Name, width),
			Double:  r.Double,
		})
	}
	row.Height = max(len(lanes), 1)*laneHeight + 6
}

// drawOverview places the bookings of a host in one row below the hosts that are placed already.
func (v *calendarView) drawOverview(row *calendarHost) {
	row.Y, row.Height = v.Height, rowHeight
	paths := map[lease.Status]string{}
	for _, b := range row.Bookings {
		x := v.x(b.Start)
		width := max(v.x(b.End)-x, 1)
		paths[b.Status] += fmt.Sprintf("M%d %dh%dv%dh-%dz", x, row.Y+4, width, rowHeight-6, width)
	}
	for _, status := range slices.Sorted(maps.Keys(paths)) {
		row.Shapes = append(row.Shapes, shape{status, paths[status]})
	}
}

// barText returns as much of a name as a bar has room for.
func barText(name string, width int) string {
	if n := (width - 8) / 7; n >= 3 {
		return text.Excerpt(name, n)
	}
	return ""
}

// Label describes a bar for readers who do not see it.
func (b bar) Label(host string) string {
	label := fmt.Sprintf("%s on %s, %s to %s, %s", b.Name, host, minute(b.Start), minute(b.End), b.Status)
	if b.Double != nil {
		label += ", double-booked with " + bookingNames(b.Double)
	}
	return label
}

// minute returns a time without seconds and without its time zone, which is UTC.
func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }
