package leasestore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// A reservation deletes all servers on a host that it gets. Servers of a running lease can be on a host that
// healing has replaced.
func TestFormerHost_IsForNoOtherReservationWhileItsLeaseRuns(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	later := e.createLease(hostsDraft(2, 3, 1, 1))
	storetest.Exec(t, e.url, `update host_allocation set host_id = 1 where reservation_id = $1`, later.Reservations[0].ID)
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, time.Hour)
	e.updateHostsAndHeal(map[string]bool{"cmp-1": true}, time.Hour)
	e.expectHealth(l, health{Degraded: true, Changed: true, Hosts: []int64{2}})

	now := func(d lease.Draft) lease.Draft {
		d.Start = lease.RequestedDate{Now: true}
		return d
	}
	e.expectCreateFault(now(hostsDraft(0, 1, 1, 1)), lease.NotEnoughHosts)
	e.expectCreateFault(now(instancesDraft(0, 1, 1)), lease.NotEnoughHosts)
	e.expectUpdateFault(later.ID, lease.Change{Start: &lease.RequestedDate{At: hour(0)}}, lease.NotEnoughHosts)
	latest := hour(9)
	for _, d := range []lease.Draft{now(hostsDraft(0, 1, 1, 1)), now(instancesDraft(0, 1, 1))} {
		d.End = lease.RequestedDate{At: time.Now().Add(30 * time.Minute)}
		if got := e.planLease(d, &latest); !got.StartAt.Equal(hour(1)) {
			t.Errorf("earliest start of a lease of %s: got %s, want the end of the running lease, %s",
				d.Reservations[0].Type, got.StartAt, hour(1))
		}
	}
	e.createLease(hostsDraft(1, 2, 2, 2)) // after the end of the running lease
}

// If several hosts are down for a while, each lease gets its own hosts back, whatever the order of the
// leases.
func TestFormerHost_ComesBackToItsOwnReservation(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	first := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	second := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	storetest.Exec(t, e.url, `update lease set start_at = start_at - interval '1 hour' where id = $1`, second.ID)
	down := map[string]bool{"cmp-1": false, "cmp-2": false}
	e.updateHostsAndHeal(down, time.Hour)
	for _, l := range []lease.Lease{first, second} {
		e.expectHealth(l, health{Degraded: true, Missing: true, Hosts: []int64{}})
	}
	e.readHosts(inState(true, "cmp-1", "cmp-2")...)
	e.heal(time.Hour)
	e.expectHealth(first, health{Degraded: true, Changed: true, Hosts: []int64{1}})
	e.expectHealth(second, health{Degraded: true, Changed: true, Hosts: []int64{2}})

	c, err := e.Lease.CloudReservation(t.Context(), first.Reservations[0].ID)
	if err != nil || len(c.FormerHosts) != 1 || len(c.ComputeHosts) != 1 {
		t.Fatalf("reservation that has its host back: got %+v, error %v; want the host, which Nova has still to get", c, err)
	}
	if err := e.Lease.SaveCloudIDs(t.Context(), c.ID, lease.CloudIDs{Revision: c.Revision - 1}); err != nil {
		t.Fatal(err)
	}
	if c, err = e.Lease.CloudReservation(t.Context(), c.ID); err != nil || len(c.FormerHosts) != 1 {
		t.Errorf("after an update of Nova to an older revision: got %+v, error %v; want the former host", c, err)
	}
	if err := e.Lease.SaveCloudIDs(t.Context(), c.ID, lease.CloudIDs{Revision: c.Revision}); err != nil {
		t.Fatal(err)
	}
	if c, err = e.Lease.CloudReservation(t.Context(), c.ID); err != nil || len(c.FormerHosts) > 0 {
		t.Errorf("after the update of Nova: got %+v, error %v; want no former host", c, err)
	}
}

// A lease that is extended can keep a former host that another lease, which runs by then, has got for the
// time after the first end date.
func TestFormerHost_OfAnExtendedLeaseStaysInTheLeaseThatHasIt(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	extended := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	has := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	r := has.Reservations[0].ID
	storetest.Exec(t, e.url, `
		insert into reservation_former_host (reservation_id, host_id)
		select $1, host_id
		from host_allocation
		where reservation_id = $2`, extended.Reservations[0].ID, r)

	e.updateLease(has.ID, lease.Change{End: &lease.RequestedDate{At: has.EndAt.Add(time.Hour)}})

	e.expectHealth(has, health{Hosts: []int64{2}})
	c, err := e.Lease.CloudReservation(t.Context(), r)
	if err == nil {
		err = e.Lease.SaveCloudIDs(t.Context(), r, lease.CloudIDs{Revision: c.Revision})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := e.formerHosts(extended.Reservations[0].ID); len(got) > 0 {
		t.Errorf("former hosts after the other lease has its hosts at Nova: got %v, want none", got)
	}
}

// formerHosts returns the former hosts of a reservation.
func (t *fixture) formerHosts(reservation uuid.UUID) []lease.FormerHost {
	t.Helper()
	c, err := t.Lease.CloudReservation(t.Context(), reservation)
	if err != nil {
		t.Fatal(err)
	}
	return c.FormerHosts
}

// A former host without servers is released some time after the replacement, unless it was replaced again.
func TestFormerHost_WithoutServersIsReleased(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	r := l.Reservations[0].ID
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, time.Hour)
	e.updateHostsAndHeal(map[string]bool{"cmp-1": true}, time.Hour)
	due := func(want ...uuid.UUID) {
		t.Helper()
		got, err := e.Lease.ReservationsWithFormerHosts(t.Context(), 10)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("reservations whose former hosts can be released: got %v, error %v; want %v", got, err, want)
		}
	}
	release := func(all []lease.FormerHost, want int) {
		t.Helper()
		if err := e.Lease.ReleaseFormerHosts(t.Context(), r, all); err != nil {
			t.Fatal(err)
		}
		if left := e.formerHosts(r); len(left) != want {
			t.Errorf("former hosts after the release: got %v, want %d", left, want)
		}
	}
	due()
	release(e.formerHosts(r), 1) // Nova can still create a server there
	storetest.Exec(t, e.url, `update reservation_former_host set left_at = left_at - interval '1 hour'`)
	due(r)
	stale := e.formerHosts(r)
	storetest.Exec(t, e.url, `update reservation_former_host set left_at = left_at + interval '20 minutes'`)
	release(stale, 1) // replaced again
	release(e.formerHosts(r), 0)
	due()
	e.createLease(hostsDraft(0, 1, 1, 1))
}
