package leasestore_test

import (
	"testing"
	"time"

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
