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
