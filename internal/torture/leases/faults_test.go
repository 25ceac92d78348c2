package leases

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

func TestLease_OverdueEventsRunInOrder(t *testing.T) {
	t.Parallel()
	d := newLeaseDeployment(t)
	g := d.newHostGroup(t, 2)
	begin := time.Now().Truncate(time.Second).Add(time.Hour) // after the creation of the last lease
	at := func(in time.Duration) time.Duration { return time.Until(begin.Add(in)) + 500*time.Millisecond }
	first := g.createLease(at(5*time.Second), at(7*time.Second), g.reservationOnHost(1))
	follower := g.createLease(at(7*time.Second), at(8*time.Second), g.reservationOnHost(1))
	last := g.createLease(at(8*time.Second), at(2*time.Hour), g.reservationOnHost(1))
	other := g.createLease(at(6*time.Second), at(2*time.Hour), g.reservationOnHost(2))
	storetest.Exec(t, d.Database, `
		with leases as (update lease set start_at = start_at - $1::interval, end_at = end_at - $1::interval),
			events as (update event set at = at - $1::interval)
		update host_allocation set during = tstzrange(lower(during) - $1::interval, upper(during) - $1::interval)`,
		time.Until(begin.Add(9*time.Second))) // all start and end dates up to the last start are over

	d.StartWorker("relay,temporal")

	first.awaitStatuses("TERMINATED DONE DONE deleted")
	follower.awaitStatuses("TERMINATED DONE DONE deleted")
	last.awaitStatuses("ACTIVE DONE UNDONE active")
	other.awaitStatuses("ACTIVE DONE UNDONE active")
	if got := g.hostAggregates(last.reservations[0], other.reservations[0]); got != "a:1 b:2" {
		t.Errorf("list the aggregates of the two ACTIVE leases at Nova: got %s, want a:1 b:2", got)
	}
	order := d.Rows(`
		select l.id || ' ' || e.event_type
		from event e join lease l on l.id = e.lease_id
		where e.status = 'DONE' and l.id::text = any($1)
		order by e.updated_at`, []string{first.id, follower.id, last.id})
	var want []string
	for _, l := range []*testLease{first, follower} {
		want = append(want, l.id+" start_lease", l.id+" before_end_lease", l.id+" end_lease")
	}
	d.Same("order of the events", append(want, last.id+" start_lease"), order)
}

func TestLease_ContinuesStepAfterWorkerKilled(t *testing.T) {
	t.Parallel()
	d := newLeaseDeployment(t)
	victim := d.StartWorker("relay,temporal")
	g := d.newHostGroup(t, 2)
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1), g.instanceReservation(1, "True"))
	l.awaitAggregates("freepool:1,2")
	// creation of the reservation's server group
	hits, removeFault := g.injectFault("POST",
		"reservation:"+l.reservations[1], http.StatusServiceUnavailable)
	l.startNow()
	g.awaitHits(hits, 1)
	victim.Kill()
	killed := time.Now()
	l.awaitStatus("STARTING")
	removeFault()
	victim = d.StartWorker("relay,temporal")
	l.awaitStatuses("ACTIVE DONE UNDONE active active")
	t.Logf("another process finished the start %s after the kill", time.Since(killed))
	if f, groups := g.flavorAndGroups(l.reservations[1]); f == nil || groups != 1 {
		t.Errorf(
			"start a lease of instances through a kill: got flavor %+v and %d server groups at Nova, want a flavor and 1",
			f,
			groups,
		)
	}

	hits, removeFault = g.injectFault("DELETE", "/flavors/"+l.reservations[1], http.StatusServiceUnavailable)
	l.endNow()
	g.awaitHits(hits, 1)
	victim.Kill()
	killed = time.Now()
	l.awaitStatus("TERMINATING")
	removeFault()
	d.StartWorker("relay,temporal")
	l.awaitStatuses("TERMINATED DONE DONE deleted deleted")
	t.Logf("another process finished the end %s after the kill", time.Since(killed))
	if f, groups := g.flavorAndGroups(l.reservations[1]); f != nil || groups != 0 {
		t.Errorf(
			"end a lease of instances through a kill: got flavor %+v and %d server groups at Nova, want none",
			f,
			groups,
		)
	}
	l.awaitAggregates("freepool:1,2")
}

// TestLease_NetworkOfSegmentAfterWorkerKilled kills the worker after Neutron has created the network of a
// lease but before berth has set the tags and the name of this network. The test kills the next worker while
// Neutron deletes the network.
func TestLease_NetworkOfSegmentAfterWorkerKilled(t *testing.T) {
	t.Parallel()
	d := newLeaseDeployment(t)
	victim := d.StartWorker("relay,temporal")
	g := d.newHostGroup(t, 0)
	g.api.Must("POST", "/reservation/v1/networks",
		servertest.Object{"network_type": "vlan", "physical_network": "physnet1", "segment_id": 100})
	l := g.createLease(time.Hour, 2*time.Hour,
		servertest.Object{"resource_type": "network", "network_name": "lab"})
	hits, removeFault := g.injectFault("PUT", "/tags", http.StatusServiceUnavailable)
	l.startNow()
	g.awaitHits(hits, 1)
	victim.Kill()
	l.awaitStatus("STARTING")
	removeFault()
	victim = d.StartWorker("relay,temporal")
	l.awaitStatuses("ACTIVE DONE UNDONE active")
	tag := "reservation:" + l.reservations[0]
	if all := d.neutron.Networks(); len(all) != 1 || all[0].Name != "lab" ||
		!slices.Contains(all[0].Tags, tag) {
		t.Fatalf(
			"start a lease of a network through a kill: got the networks %+v at Neutron, want one named lab with the tag %s",
			all,
			tag,
		)
	}

	hits, removeFault = g.injectFault("DELETE", "/networks/", http.StatusServiceUnavailable)
	l.endNow()
	g.awaitHits(hits, 1)
	victim.Kill()
	l.awaitStatus("TERMINATING")
	removeFault()
	d.StartWorker("relay,temporal")
	l.awaitStatuses("TERMINATED DONE DONE deleted")
	if all := d.neutron.Networks(); len(all) > 0 {
		t.Errorf("end a lease of a network through a kill: got the networks %+v at Neutron, want none", all)
	}
}

func TestHealing_MovesReservationsInNovaAggregates(t *testing.T) {
	t.Parallel()
	listener := &notifytest.Webhook{}
	d := newLeaseDeployment(t, "BERTH_LEASE_MONITOR=on",
		"BERTH_LEASE_WEBHOOK_URL="+servertest.Serve(t, listener))
	d.StartWorker("relay,temporal")
	g := d.newHostGroup(t, 3)
	whole := g.createLease(time.Hour, 2*time.Hour, g.reservationOnHost(1))
	some := g.createLease(time.Hour, 2*time.Hour, g.instanceReservation(2, nil))
	g.api.Must("PUT", whole.path, servertest.Object{
		"reservations": []servertest.Object{{"id": whole.reservations[0], "hypervisor_properties": ""}},
	})
	later := g.createLease(20*time.Hour, 21*time.Hour, g.hostReservation(3, 3))
	for _, l := range []*testLease{whole, some} {
		l.startNow()
		l.awaitStatus("ACTIVE")
	}
	both := append(slices.Clone(whole.reservations), some.reservations...)
	for i, step := range []struct {
		host         int
		state        string
		pools        string
		flags, other string // health flags of the host reservation, and of the instance reservation
	}{
		{1, "up", "a:1 b:2 freepool:2,3", "", ""},
		{1, "down", "a:3 b:2 freepool:1,2", "degraded resources_changed", ""},
		// no other host has capacity
		{2, "disabled", "a:3 freepool:1,2", "degraded resources_changed", "degraded missing_resources"},
		// host 1 can still have servers of the host reservation
		{1, "up", "a:3 freepool:1,2", "degraded resources_changed", "degraded missing_resources"},
		{2, "up", "a:3 b:2 freepool:1,2", "degraded resources_changed", "degraded resources_changed"},
		{3, "down", "a:1 b:2 freepool:2,3", "degraded resources_changed", "degraded resources_changed"},
		{3, "up", "a:1 b:2 freepool:2,3", "degraded resources_changed", "degraded resources_changed"},
	} {
		if i == 1 || i == 4 {
			listener.InjectFaults(notifytest.Fault{Status: 503},
				notifytest.Fault{DropConnection: true, Applied: true})
		}
		g.Nova.SetHypervisor(g.hosts[step.host-1], step.state)
		d.runSweep()
		g.await(fmt.Sprintf("after step %d the aggregates are %s", i, step.pools), func() string {
			if got := g.hostAggregates(both...); got != step.pools {
				return "they are " + got
			}
			return ""
		})
		if got, other := whole.healthFlags(), some.healthFlags(); got != step.flags || other != step.other {
			t.Errorf(
				"health flags after step %d: got %q for the host reservation and %q for the instance reservation, want the flags of this step",
				i, got, other,
			)
		}
		if got := later.healthFlags(); got != "" {
			t.Errorf(
				"health flags after step %d of a lease that starts after the healing interval: got %s, want none",
				i,
				got,
			)
		}
	}
	whole.endNow()
	some.endNow()
	whole.awaitStatuses("TERMINATED DONE DONE deleted")
	some.awaitStatuses("TERMINATED DONE DONE deleted")
	whole.awaitAggregates("freepool:1,2,3")
	g.awaitNotifications(listener, whole,
		"create update update start_lease.begin start_lease health health update before_end_lease end_lease.begin end_lease")
	g.awaitNotifications(listener, some,
		"create update start_lease.begin start_lease health health update before_end_lease end_lease.begin end_lease")
	g.awaitNotifications(listener, later, "create")
}
