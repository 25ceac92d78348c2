package leasestore_test

import (
	"testing"
	"time"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

func TestHostCalendar_PagesOfHostsWithTheBookingsInTheWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	near, far := f.createLease(hostsDraft(1, 3, 2, 2)), f.createLease(hostsDraft(200, 210, 3, 3))
	read := func(c leasestore.Calendar) (hosts, bookings int) {
		t.Helper()
		found, err := f.Lease.HostCalendar(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range found {
			if i > 0 && h.ID <= found[i-1].ID || h.Hostname == "" || !h.Enabled {
				t.Errorf("host %d of the calendar: got %+v, want the hosts in the order of their IDs", i, h)
			}
			for _, b := range h.Bookings {
				if b.Lease != near.ID && b.Lease != far.ID || b.Status != lease.Pending ||
					b.Type != lease.PhysicalHost ||
					!b.End.After(b.Start) {
					t.Errorf("booking of host %s: got %+v, want one of the two leases", h.Hostname, b)
				}
			}
			bookings += len(h.Bookings)
		}
		return len(found), bookings
	}
	day, all := 24*time.Hour, 300*time.Hour
	for name, c := range map[string]struct {
		calendar        leasestore.Calendar
		hosts, bookings int
	}{
		"near": {leasestore.Calendar{Limit: 10, From: hour(0), To: hour(0).Add(day)}, 3, 2},
		"all":  {leasestore.Calendar{Limit: 10, From: hour(0), To: hour(0).Add(all)}, 3, 5},
		"past": {leasestore.Calendar{Limit: 10, From: hour(0).Add(-day), To: hour(0)}, 3, 0},
		"next page": {leasestore.Calendar{
			After: f.hosts[1].ID,
			Limit: 10,
			From:  hour(0),
			To:    hour(0).Add(all),
		}, 1, -1},
		"one page": {leasestore.Calendar{Limit: 2, From: hour(0), To: hour(0).Add(all)}, 2, -1},
		"one host": {leasestore.Calendar{
			Host:  f.hosts[2].ID,
			Limit: 1,
			From:  hour(0),
			To:    hour(0).Add(all),
		}, 1, -1},
		"no host": {leasestore.Calendar{
			Host:  1 << 40,
			Limit: 1,
			From:  hour(0),
			To:    hour(0).Add(all),
		}, 0, 0},
	} {
		hosts, bookings := read(c.calendar)
		if hosts != c.hosts || c.bookings >= 0 && bookings != c.bookings {
			t.Errorf("calendar %s: got %d hosts with %d bookings, want %d with %d",
				name, hosts, bookings, c.hosts, c.bookings)
		}
	}
	id, err := f.Lease.HostByName(t.Context(), f.hosts[1].Hostname)
	if err != nil || id != f.hosts[1].ID {
		t.Errorf("host by name: got %d, error %v, want %d", id, err, f.hosts[1].ID)
	}
	names, err := f.Lease.HostNames(t.Context(), []int64{id, 1 << 40})
	if err != nil || len(names) != 1 || names[id] != f.hosts[1].Hostname {
		t.Errorf("names of a host and of no host: got %v, error %v", names, err)
	}
}
