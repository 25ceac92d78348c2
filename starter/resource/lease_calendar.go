package resource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const calendarHelp = `Prints one line for each host and one letter for each lease. A cell with several leases is *, a free cell is a dot.
The legend below names the lease of each letter. The token must be allowed to list hosts.`

// hostReservation is a lease's reservation of one host.
type hostReservation struct {
	host, leaseID, leaseName, project, status string
	start, end                                time.Time
}

var calendarColumns = []string{"letter", "lease", "project_id", "status", "start_date", "end_date"}

// hostAllocations is the resource that lists the reservations of each host.
var hostAllocations = &cli.Resource{
	Name:      "allocation",
	Path:      "/reservation/v1/os-hosts/allocations",
	PluralKey: "allocations",
	IDKey:     "resource_id",
}

// calendarWindow is the time span of a lease calendar, and the number of cells into which the calendar
// divides this time span.
type calendarWindow struct {
	from, until time.Time
	cells       int
}

func showCalendar(f *pflag.FlagSet) cli.Action {
	from := f.String("from", "now", "begin of the calendar: "+dateHelp)
	length := f.String("for", "1d", "time span of the calendar, for example 12h or 7d")
	zone := f.String("zone", "Local", "time zone of the dates, for example UTC, Europe/Paris or +02:00")
	width := f.Int("width", 72, "number of cells in a line")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		w, err := parseWindow(*from, *length, *zone, *width, s.Now())
		if err != nil {
			return err
		}
		names, reservations, err := listHostReservations(ctx, s, w)
		if err != nil {
			return err
		}
		if s.Output.Format != "table" {
			all := make([]cli.Object, len(reservations))
			for i, r := range reservations {
				all[i] = w.legendRow(r, "")
				all[i]["host"], all[i]["lease_id"] = r.host, r.leaseID
				delete(all[i], "letter")
			}
			return s.Output.PrintDocument(all)
		}
		return w.draw(s.Output, names, reservations)
	}
}

func parseWindow(from, length, zone string, cells int, now time.Time) (calendarWindow, error) {
	const minWidth, maxWidth = 12, 1000
	location, err := parseZone(zone)
	if err != nil {
		return calendarWindow{}, err
	}
	date, err := parseInstant(from, now)
	if err != nil {
		return calendarWindow{}, err
	}
	begin, err := parseStart(fmt.Sprint(date), now)
	if err != nil {
		return calendarWindow{}, cli.UsageError("--from: %q is not a time such as %s", from, dateHelp)
	}
	d, err := parseDuration(length)
	switch {
	case err != nil:
		return calendarWindow{}, err
	case d < time.Minute:
		return calendarWindow{}, cli.UsageError("--for must be a minute or more")
	case cells < minWidth || cells > maxWidth:
		return calendarWindow{}, cli.UsageError("--width must be from %d to %d", minWidth, maxWidth)
	}
	begin = begin.In(location).Truncate(time.Second)
	return calendarWindow{begin, begin.Add(d), cells}, nil
}

// listHostReservations returns the names of all hosts, and their reservations within the window, sorted by
// host and time.
func listHostReservations(
	ctx context.Context,
	s *cli.Session,
	w calendarWindow,
) (names []string, all []hostReservation, err error) {
	byHost, byLease := map[string]string{}, map[string]cli.Object{}
	registered, err := Hosts.List(ctx, s, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range registered {
		byHost[fmt.Sprint(h["id"])] = Hosts.DisplayName(h)
		names = append(names, Hosts.DisplayName(h))
	}
	list, err := Leases.List(ctx, s, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range list {
		byLease[fmt.Sprint(l["id"])] = l
	}
	allocations, err := hostAllocations.List(ctx, s, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range allocations {
		items, _ := cli.Objects(a["reservations"])
		for _, item := range items {
			r := hostReservation{
				host:    byHost[fmt.Sprint(a["resource_id"])],
				leaseID: fmt.Sprint(item["lease_id"]),
				start:   parseAPIDate(item["start_date"]),
				end:     parseAPIDate(item["end_date"]),
			}
			l, found := byLease[r.leaseID]
			if !found || !r.start.Before(w.until) || !r.end.After(w.from) {
				continue
			}
			r.leaseName = Leases.DisplayName(l)
			r.project, r.status = fmt.Sprint(l["project_id"]), fmt.Sprint(l["status"])
			all = append(all, r)
		}
	}
	slices.Sort(names)
	slices.SortStableFunc(all, func(a, b hostReservation) int {
		return cmp.Or(
			strings.Compare(a.host, b.host),
			a.start.Compare(b.start),
			strings.Compare(a.leaseID, b.leaseID),
		)
	})
	return names, all, nil
}

// parseAPIDate parses a date in the API's output format.
func parseAPIDate(v any) time.Time {
	at, _ := time.Parse("2006-01-02T15:04:05.999999", fmt.Sprint(v))
	return at
}

// draw prints the chart of the lease calendar and the legend of the chart.
func (w calendarWindow) draw(p *cli.Printer, names []string, reservations []hostReservation) error {
	letters := map[string]string{}
	var legend []cli.Object
	for _, r := range reservations {
		if letters[r.leaseID] == "" {
			letters[r.leaseID] = leaseLetter(len(letters))
			legend = append(legend, w.legendRow(r, letters[r.leaseID]))
		}
	}
	rows := make([][]string, len(names))
	for i, name := range names {
		line := strings.Split(strings.Repeat("·", w.cells), "")
		for _, r := range reservations {
			if r.host == name {
				w.fillCells(line, r, letters[r.leaseID])
			}
		}
		rows[i] = []string{cli.Sanitize(name), strings.Join(line, "")}
	}
	if err := cli.WriteTable(p.Writer, []string{"host", w.axisLabels()}, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.Writer); err != nil {
		return err
	}
	return p.PrintList(legend, calendarColumns)
}

// fillCells writes the letter of a lease into those cells of a host's line whose time overlaps with the
// lease's reservation of the host. A cell that already has the letter of another lease gets a star.
func (w calendarWindow) fillCells(line []string, r hostReservation, letter string) {
	for i := range line {
		begins, ends := w.cellStart(i), w.cellStart(i+1)
		switch {
		case !r.start.Before(ends) || !r.end.After(begins):
		case line[i] == "·":
			line[i] = letter
		default:
			line[i] = "*"
		}
	}
}

// cellStart returns the instant at which a cell of the chart begins.
func (w calendarWindow) cellStart(cell int) time.Time {
	return w.from.Add(time.Duration(float64(w.until.Sub(w.from)) * float64(cell) / float64(w.cells)))
}

// axisLabels returns the header line of the chart, with a date above every eighteenth cell.
func (w calendarWindow) axisLabels() string {
	const labelWidth = 18
	var b strings.Builder
	for i := 0; i < w.cells; i += labelWidth {
		fmt.Fprintf(&b, "%-*s", labelWidth, w.cellStart(i).Format("01-02 15:04"))
	}
	return b.String() + w.from.Format("(MST)")
}

func (w calendarWindow) legendRow(r hostReservation, letter string) cli.Object {
	date := func(t time.Time) string { return t.In(w.from.Location()).Format(time.RFC3339) }
	return cli.Object{
		"letter":     letter,
		"lease":      r.leaseName,
		"project_id": r.project,
		"status":     r.status,
		"start_date": date(r.start),
		"end_date":   date(r.end),
	}
}

// leaseLetter returns the letter that the chart shows for the lease with the index n, or # if the alphabet
// has too few letters.
func leaseLetter(n int) string {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if n < len(all) {
		return all[n : n+1]
	}
	return "#"
}
