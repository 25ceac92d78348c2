package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/store/leasestore"
	"berth/internal/text"
)

// The size of the calendar, in the units of the SVG.
const (
	calendarWidth = 1000 // of the window of time
	labelWidth    = 170
	axisHeight    = 28
	laneHeight    = 26
	maxLanes      = 6 // rows of bars of one host
	calendarHosts = 25
)

// zooms are the windows of time that the calendar can show, from near to far.
var zooms = []struct {
	name string
	span time.Duration
	step time.Duration // distance of the lines of the grid
	form string        // format of the times at the grid
}{
	{"6 hours", 6 * time.Hour, time.Hour, "15:04"},
	{"day", 24 * time.Hour, 3 * time.Hour, "15:04"},
	{"week", 7 * 24 * time.Hour, 24 * time.Hour, "Mon 2 Jan"},
	{"4 weeks", 28 * 24 * time.Hour, 7 * 24 * time.Hour, "2 Jan 2006"},
}

// defaultZoom is the index of the zoom without a parameter.
const defaultZoom = 2

// dateForm is the format of the parameter `from`.
const dateForm = "2006-01-02T15:04"

// calendarView is the content of the calendar of leases.
type calendarView struct {
	From, To      time.Time
	Width, Height int
	Hosts         []calendarHost
	Grid          []gridLine
	Now           int // x of the present time; 0: outside the window
	Links         []fact
	Next          string
	Late          []lateStart
}

type calendarHost struct {
	leasestore.CalendarHost
	Y, Height int
	Bars      []bar
	Hidden    int // bookings that have no room in the picture
}

type bar struct {
	leasestore.Booking
	X, Y, Width int
	Text        string // as much of the name as the bar has room for
}

type gridLine struct {
	X    int
	Text string
}

// calendar reads the calendar of the leases of one page of hosts.
func (c *handler) calendar(ctx context.Context, q query) (any, error) {
	now := time.Now().UTC()
	zoom, from, after, err := calendarWindow(q.values, now)
	if err != nil {
		return nil, err
	}
	v := calendarView{From: from, To: from.Add(zooms[zoom].span), Width: labelWidth + calendarWidth}
	hosts, err := c.Lease.HostCalendar(ctx, leasestore.Calendar{
		After: after,
		Limit: calendarHosts + 1,
		From:  v.From,
		To:    v.To,
	})
	if err != nil {
		return nil, err
	}
	if len(hosts) > calendarHosts {
		hosts = hosts[:calendarHosts]
		v.Next = calendarPath(zoom, from, hosts[calendarHosts-1].ID)
	}
	v.Late = lateStarts(hosts, now)
	v.Height = axisHeight
	for _, h := range hosts {
		row := v.draw(h)
		v.Hosts = append(v.Hosts, row)
		v.Height += row.Height
	}
	for at := from.Truncate(zooms[zoom].step); at.Before(v.To); at = at.Add(zooms[zoom].step) {
		if !at.Before(from) {
			v.Grid = append(v.Grid, gridLine{v.x(at), at.Format(zooms[zoom].form)})
		}
	}
	if now.After(v.From) && now.Before(v.To) {
		v.Now = v.x(now)
	}
	v.Links = calendarLinks(zoom, from, after)
	return v, nil
}

// calendarWindow reads the parameters of the calendar.
func calendarWindow(values url.Values, now time.Time) (zoom int, from time.Time, after int64, err error) {
	zoom, from = defaultZoom, now.Truncate(24*time.Hour)
	if s := values.Get("zoom"); s != "" {
		zoom = -1
		for i, z := range zooms {
			if z.name == s {
				zoom = i
			}
		}
		if zoom < 0 {
			return 0, from, 0, osapi.Fault(http.StatusBadRequest, "",
				"'zoom' must be '6 hours', 'day', 'week' or '4 weeks'.")
		}
	}
	if s := values.Get("from"); s != "" {
		if from, err = time.Parse(dateForm, s); err != nil || from.Year() < 1970 || from.Year() > 9000 {
			return 0, from, 0, osapi.Fault(http.StatusBadRequest, "",
				"'from' must be a time in the form 2030-01-31T10:00.")
		}
	} else if zoom == 0 {
		from = now.Truncate(time.Hour).Add(-time.Hour)
	}
	if s := values.Get("after"); s != "" {
		if after, err = strconv.ParseInt(s, 10, 64); err != nil || after < 0 {
			return 0, from, 0, osapi.Fault(http.StatusBadRequest, "", "'after' is not the ID of a host.")
		}
	}
	return zoom, from, after, nil
}

// calendarPath returns the path of the calendar, below the path of the console.
func calendarPath(zoom int, from time.Time, after int64) string {
	values := url.Values{"zoom": {zooms[zoom].name}, "from": {from.Format(dateForm)}}
	if after > 0 {
		values.Set("after", strconv.FormatInt(after, 10))
	}
	return "/calendar?" + values.Encode()
}

// calendarLinks returns the links that move and zoom the window. The window keeps its middle when it zooms.
func calendarLinks(zoom int, from time.Time, after int64) []fact {
	span := zooms[zoom].span
	links := []fact{
		{Name: "earlier", Value: "Earlier", Path: calendarPath(zoom, from.Add(-span/2), after)},
		{Name: "today", Value: "Today", Path: "/calendar?zoom=" + url.QueryEscape(zooms[zoom].name)},
		{Name: "later", Value: "Later", Path: calendarPath(zoom, from.Add(span/2), after)},
	}
	at := func(to int) string {
		return calendarPath(to, from.Add((span-zooms[to].span)/2).Truncate(time.Hour), after)
	}
	if zoom > 0 {
		links = append(links, fact{Name: "in", Value: "Zoom in to " + zooms[zoom-1].name, Path: at(zoom - 1)})
	}
	if zoom < len(zooms)-1 {
		links = append(links,
			fact{Name: "out", Value: "Zoom out to " + zooms[zoom+1].name, Path: at(zoom + 1)})
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
func (v *calendarView) draw(h leasestore.CalendarHost) calendarHost {
	row := calendarHost{CalendarHost: h, Y: v.Height}
	var lanes []time.Time // end of the last booking of each lane
	for _, b := range h.Bookings {
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
		row.Bars = append(row.Bars, bar{b, x, row.Y + lane*laneHeight + 3, width, barText(b.Name, width)})
	}
	row.Height = max(len(lanes), 1)*laneHeight + 6
	return row
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
	return fmt.Sprintf(
		"%s on %s, %s to %s, %s",
		b.Name, host, b.Start.UTC().Format("2006-01-02 15:04"), b.End.UTC().Format("2006-01-02 15:04"),
		b.Status,
	)
}
