package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

// slot is an interval in which no lease has a host.
type slot struct{ From, To time.Time }

// freeSlots returns the intervals between two times in which no lease has the host. Of a host with more
// bookings than the calendar lists, freeSlots examines only the time before the last listed booking.
func freeSlots(h leasestore.CalendarHost, from, to time.Time) (free []slot) {
	if n := len(h.Bookings); h.More && h.Bookings[n-1].Start.Before(to) {
		to = h.Bookings[n-1].Start
	}
	for _, b := range h.Bookings { // sorted by start
		if b.Start.After(to) {
			break
		}
		if b.Start.After(from) {
			free = append(free, slot{from, b.Start})
		}
		if b.End.After(from) {
			from = b.End
		}
	}
	if from.Before(to) {
		free = append(free, slot{from, to})
	}
	return free
}

// nextFree returns the begin of the first free slot that is at least `unit` long and not over yet. If there
// is none, the result `ok` is false.
func nextFree(free []slot, unit time.Duration, now time.Time) (at time.Time, ok bool) {
	for _, f := range free {
		if at = f.From; at.Before(now) {
			at = now
		}
		if f.To.Sub(at) >= unit {
			return at, true
		}
	}
	return at, false
}

// doubleBooking is a pair of leases that have a host at the same time, although one of them needs it alone.
type doubleBooking struct {
	Host          leasestore.CalendarHost
	First, Second leasestore.Booking
}

// isDoubleBooked reports whether two leases have a host at the same time, although one of them needs it
// alone. Leases with reservations of instances may share a host.
func isDoubleBooked(a, b leasestore.Booking) bool {
	return a.Start.Before(b.End) && b.Start.Before(a.End) &&
		(a.Type == lease.PhysicalHost || b.Type == lease.PhysicalHost)
}

// doubleBookings returns the double bookings of a host, as pairs of indices of its bookings.
func doubleBookings(h leasestore.CalendarHost) (pairs [][2]int) {
	for i, a := range h.Bookings {
		for j := i + 1; j < len(h.Bookings); j++ {
			if isDoubleBooked(a, h.Bookings[j]) {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs
}

// describe returns what the table says about a host, and lists the double bookings of the host.
func (v *calendarView) describe(h leasestore.CalendarHost, unit time.Duration, now time.Time) calendarHost {
	row := calendarHost{CalendarHost: h}
	with := map[int][]leasestore.Booking{} // the double bookings of each booking
	for _, pair := range doubleBookings(h) {
		i, j := pair[0], pair[1]
		first, second := h.Bookings[i], h.Bookings[j]
		with[i], with[j] = append(with[i], second), append(with[j], first)
		v.Double = append(v.Double, doubleBooking{h, first, second})
	}
	for i := range h.Bookings {
		b := &h.Bookings[i]
		row.Rows = append(row.Rows, calendarRow{b, with[i], b.Start, b.End})
	}
	free := freeSlots(h, v.From, v.To)
	var texts []string
	for _, f := range free {
		row.Rows = append(row.Rows, calendarRow{From: f.From, To: f.To})
		texts = append(texts, minute(f.From)+" to "+minute(f.To))
	}
	slices.SortStableFunc(row.Rows, func(a, b calendarRow) int { return a.From.Compare(b.From) })
	row.NextFree = v.nextFreeText(h, free, unit, now)
	row.Leases = leaseCounts(h, len(with))
	row.Free = shortened(texts)
	return row
}

// nextFreeText says when the next free slot of a host begins.
func (v *calendarView) nextFreeText(
	h leasestore.CalendarHost,
	free []slot,
	unit time.Duration,
	now time.Time,
) string {
	at, ok := nextFree(free, unit, now)
	switch {
	case !h.Enabled:
		return "disabled: no new lease gets it"
	case !ok:
		return "not in this window"
	case !at.After(now):
		return "now"
	default:
		return minute(at)
	}
}

// maxSlots is the maximum number of free slots of one host that the overview lists.
const maxSlots = 12

// shortened joins the first maxSlots texts.
func shortened(texts []string) string {
	text := strings.Join(texts[:min(len(texts), maxSlots)], "; ")
	if more := len(texts) - maxSlots; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// leaseCounts says how many leases of each status have a host, and how many of them are double-booked.
func leaseCounts(h leasestore.CalendarHost, doubleBooked int) string {
	byStatus := map[lease.Status]int{}
	for _, b := range h.Bookings {
		byStatus[b.Status]++
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		parts = append(parts, fmt.Sprintf("%d %s", byStatus[status], status))
	}
	if h.More {
		parts = append(parts, "and more; zoom in")
	}
	if doubleBooked > 0 {
		parts = append(parts, fmt.Sprintf("%d double-booked", doubleBooked))
	}
	return strings.Join(parts, ", ")
}

// bookingNames lists the names of the leases of bookings.
func bookingNames(bookings []leasestore.Booking) string {
	var names []string
	for _, b := range bookings {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}
