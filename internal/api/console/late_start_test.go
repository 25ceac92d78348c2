package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

func TestLateStarts_NameTheLeaseThatHoldsTheHost(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	booking := func(name string, status lease.Status, from, to time.Duration) leasestore.Booking {
		return leasestore.Booking{Name: name, Status: status, Start: now.Add(from), End: now.Add(to)}
	}
	ended := booking("ended", lease.Active, -2*time.Hour, -time.Minute)
	failed := booking("failed", lease.Error, -2*time.Hour, -time.Minute)
	failed.Type = lease.PhysicalHost
	next := booking("next", lease.Pending, time.Minute, time.Hour)
	for name, c := range map[string]struct {
		bookings []leasestore.Booking
		want     []string // lease, reason and holder
	}{
		"punctual":         {[]leasestore.Booking{booking("a", lease.Active, -time.Hour, time.Minute), next}, nil},
		"ended as planned": {[]leasestore.Booking{booking("a", lease.Terminated, -2*time.Hour, -time.Minute), next}, nil},
		"within the grace": {[]leasestore.Booking{booking("a", lease.Pending, -5*time.Second, time.Hour)}, nil},
		"start overdue":    {[]leasestore.Booking{booking("a", lease.Pending, -time.Minute, time.Hour)}, []string{"a: its start is overdue since 2030-01-31 11:59:00 UTC"}},
		"host held":        {[]leasestore.Booking{ended, next}, []string{"next: it starts at 2030-01-31 12:01:00 UTC, held by ended"}},
		"failed end":       {[]leasestore.Booking{failed, next}, []string{"next: it starts at 2030-01-31 12:01:00 UTC, held by failed"}},
		"failed instances": {[]leasestore.Booking{booking("failed", lease.Error, -2*time.Hour, -time.Minute), next}, nil},
		"only the next": {[]leasestore.Booking{ended, next, booking("last", lease.Pending, 2*time.Hour, 3*time.Hour)},
			[]string{"next: it starts at 2030-01-31 12:01:00 UTC, held by ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, l := range lateStarts([]leasestore.CalendarHost{{Bookings: c.bookings}}, now) {
				text := l.Name + ": " + l.Reason
				if l.Holder != nil {
					text += ", held by " + l.Holder.Name
				}
				got = append(got, text)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("late starts (-want +got):\n%s", d)
			}
		})
	}
}

func TestHostSentence_SaysWhichLeaseHasTheHost(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	booking := func(name string, status lease.Status, from, to time.Duration) leasestore.Booking {
		return leasestore.Booking{Name: name, Status: status, Start: now.Add(from), End: now.Add(to)}
	}
	held := booking("old", lease.Terminating, -2*time.Hour, -8*time.Minute)
	next := booking("next", lease.Pending, 40*time.Minute, time.Hour)
	const still = "Lease old should have left the host at 2030-01-31 11:52:00 UTC, and still has it. "
	for name, c := range map[string]struct {
		bookings []leasestore.Booking
		want     string
		onTime   bool
	}{
		"free":          {nil, "The host is free, and no lease gets it in the next 14 days.", true},
		"free for now":  {[]leasestore.Booking{next}, "The host is free. Lease next gets it at 2030-01-31 12:40:00 UTC.", true},
		"held":          {[]leasestore.Booking{booking("a", lease.Active, -time.Hour, time.Hour), next}, "Lease a holds the host until 2030-01-31 13:00:00 UTC.", true},
		"overdue":       {[]leasestore.Booking{held}, still + "No other lease gets it in the next 14 days.", false},
		"next is late":  {[]leasestore.Booking{held, next}, still + "Lease next gets it next: it starts late if the host is not free at 2030-01-31 12:40:00 UTC.", false},
		"start overdue": {[]leasestore.Booking{held, booking("next", lease.Pending, -time.Minute, time.Hour)}, still + "Lease next should have got it at 2030-01-31 11:59:00 UTC.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, onTime := hostSentence(leasestore.CalendarHost{Bookings: c.bookings}, now)
			if got != c.want || onTime != c.onTime {
				t.Errorf("got %q, on time %v; want %q, %v", got, onTime, c.want, c.onTime)
			}
		})
	}
}
