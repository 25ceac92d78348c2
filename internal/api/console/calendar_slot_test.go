package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

var noon = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)

// hours returns the booking of a whole host between two numbers of hours after noon.
func hours(name string, from, to int) leasestore.Booking {
	return leasestore.Booking{
		Name:  name,
		Type:  lease.PhysicalHost,
		Start: noon.Add(time.Duration(from) * time.Hour),
		End:   noon.Add(time.Duration(to) * time.Hour),
	}
}

func TestFreeSlots_AreTheTimesWithoutABooking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host leasestore.CalendarHost
		want [][2]int // hours after noon
	}{
		"no booking":    {leasestore.CalendarHost{}, [][2]int{{0, 24}}},
		"whole window":  {leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", -5, 30)}}, nil},
		"before window": {leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", -5, 2)}}, [][2]int{{2, 24}}},
		"between":       {leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", 1, 2), hours("b", 4, 30)}}, [][2]int{{0, 1}, {2, 4}}},
		"adjacent":      {leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", 0, 2), hours("b", 2, 3)}}, [][2]int{{3, 24}}},
		"overlapping":   {leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", 1, 9), hours("b", 2, 3), hours("c", 8, 10)}}, [][2]int{{0, 1}, {10, 24}}},
		"more bookings": {leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", 1, 2), hours("b", 4, 5)}, More: true}, [][2]int{{0, 1}, {2, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got [][2]int
			for _, f := range freeSlots(c.host, noon, noon.Add(24*time.Hour)) {
				got = append(got, [2]int{int(f.From.Sub(noon).Hours()), int(f.To.Sub(noon).Hours())})
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("free slots (-want +got):\n%s", d)
			}
		})
	}
}

func TestNextFree_IsTheFirstSlotThatIsLongEnough(t *testing.T) {
	t.Parallel()
	h := leasestore.CalendarHost{Bookings: []leasestore.Booking{hours("a", 1, 2), hours("b", 4, 5), hours("c", 8, 24)}}
	free := freeSlots(h, noon, noon.Add(24*time.Hour))
	for name, c := range map[string]struct {
		unit, now time.Duration
		want      time.Duration // after noon; -1: none
	}{
		"now":             {time.Hour, 0, 0},
		"first is short":  {2 * time.Hour, 0, 2 * time.Hour},
		"longest":         {3 * time.Hour, 0, 5 * time.Hour},
		"too long":        {4 * time.Hour, 0, -1},
		"rest of a slot":  {2 * time.Hour, 5*time.Hour + 30*time.Minute, 5*time.Hour + 30*time.Minute},
		"rest too short":  {2 * time.Hour, 150 * time.Minute, 5 * time.Hour},
		"after all slots": {time.Hour, 9 * time.Hour, -1},
	} {
		at, ok := nextFree(free, c.unit, noon.Add(c.now))
		if got := at.Sub(noon); ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s: got %s, %t, want %s", name, got, ok, c.want)
		}
	}
}

func TestDoubleBookings_AreOverlapsOfWholeHosts(t *testing.T) {
	t.Parallel()
	shared := func(name string, from, to int) leasestore.Booking {
		b := hours(name, from, to)
		b.Type = lease.VirtualInstance
		return b
	}
	for name, c := range map[string]struct {
		bookings []leasestore.Booking
		want     []string
	}{
		"adjacent":          {[]leasestore.Booking{hours("a", 0, 1), hours("b", 1, 2)}, nil},
		"overlap":           {[]leasestore.Booking{hours("a", 0, 2), hours("b", 1, 3)}, []string{"a b"}},
		"inside":            {[]leasestore.Booking{hours("a", 0, 9), hours("b", 1, 2), hours("c", 3, 4)}, []string{"a b", "a c"}},
		"shared by design":  {[]leasestore.Booking{shared("a", 0, 2), shared("b", 1, 3)}, nil},
		"instance and host": {[]leasestore.Booking{shared("a", 0, 2), hours("b", 1, 3)}, []string{"a b"}},
	} {
		var got []string
		for _, pair := range doubleBookings(leasestore.CalendarHost{Bookings: c.bookings}) {
			got = append(got, c.bookings[pair[0]].Name+" "+c.bookings[pair[1]].Name)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: double bookings (-want +got):\n%s", name, d)
		}
	}
}
