package leasestore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// updateHostsAndHeal updates the states of hosts, by hostname, and heals all unhealthy reservations within
// `horizon`. updateHostsAndHeal returns the number of unhealthy reservations.
func (t *fixture) updateHostsAndHeal(up map[string]bool, horizon time.Duration) (healed int) {
	t.Helper()
	var all []lease.Hypervisor
	for name, is := range up {
		all = append(all, lease.Hypervisor{Hostname: name, Up: is, Silent: !is})
	}
	t.readHosts(all...)
	return t.heal(horizon)
}

// heal heals all unhealthy reservations within `horizon` and returns their number.
func (t *fixture) heal(horizon time.Duration) (healed int) {
	t.Helper()
	unhealthy, err := t.Lease.UnhealthyReservations(t.Context(), horizon, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range unhealthy {
		if err := t.Lease.HealReservation(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return len(unhealthy)
}

// health contains the hosts of a lease with one reservation, and the flags of the lease that say whether
// resources are missing or have changed.
type health struct {
	Degraded, Missing, Changed bool
	Hosts                      []int64
}

func (t *fixture) readHealth(l lease.Lease) health {
	t.Helper()
	l = t.readLease(l.ID)
	r := l.Reservations[0]
	return health{l.Degraded, r.MissingResources, r.ResourcesChanged, r.Hosts}
}

func (t *fixture) expectHealth(l lease.Lease, want health) {
	t.Helper()
	if d := cmp.Diff(want, t.readHealth(l)); d != "" {
		t.Error(d)
	}
}

// createActiveForOneHour creates an active lease that starts now and ends at hour(1).
func (t *fixture) createActiveForOneHour(d lease.Draft) lease.Lease {
	t.Helper()
	d.Start, d.End = lease.RequestedDate{Now: true}, lease.RequestedDate{At: hour(1)}
	l := t.createLease(d)
	t.beginStep(l.ID, lease.StepStart)
	t.addToInventory(l)
	return t.finishStep(l.ID, lease.StepStart, nil)
}

func TestReservationHeal_ReplacesAFailedHostOfAnActiveLease(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})
	l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	e.expectHealth(l, health{Hosts: []int64{1}})
	down := map[string]bool{"cmp-1": false, "nobody": false}

	states := e.readHosts(inState(false, "cmp-1", "nobody")...)
	if d := cmp.Diff(lease.HostStates{Failed: []string{"cmp-1"}}, states, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("update the states of hosts, one of which is down (-want +got):\n%s", d)
	}
	if n := e.updateHostsAndHeal(down, time.Hour); n != 1 {
		t.Errorf("unhealthy reservations after a host failed: got %d, want 1", n)
	}

	e.expectHealth(l, health{Degraded: true, Changed: true, Hosts: []int64{2}})
	if d := cmp.Diff([]string{"cmp-2"}, e.inventoryHosts(l.Reservations[0].ID)); d != "" {
		t.Errorf("hosts in Placement after the failed host was replaced (-want +got):\n%s", d)
	}
	if all, _ := e.notifications(l.ID); all[len(all)-1] != "lease.health ACTIVE" {
		t.Errorf(
			"notifications after the failed host was replaced: got %v, want lease.health as the last one",
			all,
		)
	}
	e.expectCreateFault(hostsDraft(0, 1, 1, 1), lease.NotEnoughHosts) // the failed host is not free
	if n := e.updateHostsAndHeal(map[string]bool{"cmp-1": true}, time.Hour); n != 0 {
		t.Errorf("unhealthy reservations after the failed host was replaced: got %d, want 0", n)
	}
	e.expectHealth(l, health{Degraded: true, Changed: true, Hosts: []int64{2}})
	e.updateHostsAndHeal(map[string]bool{"cmp-2": false}, time.Hour)
	e.expectHealth(l, health{Degraded: true, Changed: true, Hosts: []int64{1}})
	all, _ := e.notifications(l.ID)
	if !slices.Equal(all[len(all)-2:], []string{"lease.health ACTIVE", "lease.health ACTIVE"}) {
		t.Errorf(
			"notifications after the second replacement: got %v, want lease.health twice at the end",
			all,
		)
	}
}

func TestReservationHeal_AllocatesMissingHostsWhenFree(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveForOneHour(hostsDraft(0, 1, 2, 2))

	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, time.Hour)
	e.expectHealth(l, health{Degraded: true, Missing: true, Hosts: []int64{2}})
	if d := cmp.Diff([]string{"cmp-2"}, e.inventoryHosts(l.Reservations[0].ID)); d != "" {
		t.Errorf("hosts in Placement after one of two hosts failed (-want +got):\n%s", d)
	}
	e.updateHostsAndHeal(nil, time.Hour) // no host is free
	e.expectHealth(l, health{Degraded: true, Missing: true, Hosts: []int64{2}})
	e.updateHostsAndHeal(map[string]bool{"cmp-1": true}, time.Hour)
	e.expectHealth(l, health{Degraded: true, Changed: true, Hosts: []int64{1, 2}})
	if d := cmp.Diff([]string{"cmp-1", "cmp-2"}, e.inventoryHosts(l.Reservations[0].ID)); d != "" {
		t.Errorf("hosts in Placement after the host recovered (-want +got):\n%s", d)
	}
}

func TestReservationHeal_PendingLeaseWithinTheHorizon(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	soon, late := e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(30, 31, 2, 2))
	lost := map[string]bool{"cmp-1": false, "cmp-2": false}
	hosts := e.readHealth(late).Hosts

	e.updateHostsAndHeal(lost, 3*time.Hour)
	if got := e.readHealth(soon); got.Degraded || len(got.Hosts) != 1 || got.Hosts[0] != 3 {
		t.Errorf(
			"pending lease within the horizon, after two hosts failed: got %+v, want it on the third host and not degraded",
			got,
		)
	}
	e.expectHealth(late, health{Hosts: hosts})
	e.updateHostsAndHeal(nil, 0)
	if got := e.readHealth(late); !got.Degraded || !got.Missing || got.Changed || len(got.Hosts) != 1 {
		t.Errorf(
			"later lease, healed without a horizon: got %+v, want one host, degraded, with missing and without changed resources",
			got,
		)
	}
	end := lease.RequestedDate{At: hour(32)}
	e.updateHostsAndHeal(map[string]bool{"cmp-1": true, "cmp-2": true}, time.Hour)
	if _, err := e.Lease.UpdateLease(t.Context(), late.ID, lease.Change{End: &end}); err != nil {
		t.Fatal(err)
	}
	if got := e.readHealth(late); got.Degraded || got.Missing || len(got.Hosts) != 2 {
		t.Errorf(
			"lease after an update that allocated the missing hosts: got %+v, want two hosts and not degraded",
			got,
		)
	}
}

// A client can move the end of a lease with missing resources to an earlier date, and the lease's event
// before_end_lease to another date.
func TestReservationHeal_DegradedLeaseCanBeShortened(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]lease.Draft{"hosts": hostsDraft(0, 1, 2, 2), "instances": instancesDraft(0, 1, 8)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 2)
			l := e.createActiveForOneHour(d)
			e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, time.Hour)
			want := health{Degraded: true, Missing: true, Hosts: []int64{2}}
			e.expectHealth(l, want)
			shape := e.readLease(l.ID).Reservations[0].Revision

			warned := time.Now().UTC().Add(20 * time.Minute).Truncate(time.Second)
			e.updateLease(l.ID, lease.Change{BeforeEnd: &warned})
			half := time.Now().UTC().Add(30 * time.Minute).Truncate(time.Second)
			got := e.updateLease(l.ID, lease.Change{End: &lease.RequestedDate{At: half}})
			if !got.EndAt.Equal(half) {
				t.Errorf(
					"shorten a lease with missing resources: got the end %s, want the requested one",
					got.EndAt,
				)
			}
			e.expectHealth(l, want)
			e.expectUpdateFault(l.ID, endChange(1), lease.NotEnoughHosts)
			later := hostsDraft(0, 2, 1, 1)
			later.Start = lease.RequestedDate{At: half}
			e.createLease(later) // the next lease gets the released host
			e.updateLease(l.ID, lease.Change{End: &lease.RequestedDate{Now: true}})
			if r := e.readLease(l.ID).Reservations[0]; r.Revision != shape {
				t.Error("reservation after changes of its dates only: got a new revision, want the old one")
			}
		})
	}
}

func TestReservationHeal_IgnoresLeasesInTransition(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	unhealthy := lease.UnhealthyReservation{
		Reservation: l.Reservations[0].ID,
		Host:        l.Reservations[0].Hosts[0],
	}
	if err := e.Lease.HealReservation(t.Context(), unhealthy); err != nil { // the host is up
		t.Fatal(err)
	}
	e.expectHealth(l, health{Hosts: []int64{1}})
	e.makeDue(l)
	storetest.Exec(t, e.url, `update lease set end_at = now() + interval '1 hour'`)
	storetest.Exec(t, e.url, `update host set reservable = false where id = 1`)
	e.beginStep(l.ID, lease.StepStart)
	if n := e.updateHostsAndHeal(nil, 0); n != 0 {
		t.Errorf("unhealthy reservations of a starting lease: got %d, want 0", n)
	}
	if err := e.Lease.HealReservation(t.Context(), unhealthy); err != nil {
		t.Fatal(err)
	}
	e.expectHealth(l, health{Hosts: []int64{1}})
}

// slotHealth contains the flags of a lease with an instance reservation that say whether resources are
// missing or have changed, the slots of the reservation by host, and the reservation's inventory in Placement
// by host.
type slotHealth struct {
	Degraded, Missing, Changed bool
	Slots                      map[string]int
	Stock                      map[string]int64
}

func (t *fixture) readSlotHealth(l lease.Lease) slotHealth {
	t.Helper()
	now := t.readLease(l.ID)
	return slotHealth{
		now.Degraded,
		now.Reservations[0].MissingResources,
		now.Reservations[0].ResourcesChanged,
		t.slotsByHost(l),
		t.slotInventory(l),
	}
}

func TestReservationHeal_MovesSlotsFromAFailedHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		affinity lease.Affinity
		amount   int
		dies     []string
		want     slotHealth
		returns  slotHealth
	}{
		{"no affinity", lease.AffinityNone, 5, []string{"cmp-2"},
			slotHealth{true, false, true, map[string]int{"cmp-1": 4, "cmp-3": 1}, map[string]int64{"cmp-1": 4, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 4, "cmp-3": 1}, map[string]int64{"cmp-1": 4, "cmp-3": 1}}},
		{"anywhere, without enough capacity", lease.AffinityNone, 9, []string{"cmp-1"},
			slotHealth{true, true, false, map[string]int{"cmp-2": 4, "cmp-3": 1}, map[string]int64{"cmp-2": 4, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-2": 4, "cmp-3": 4}, map[string]int64{"cmp-1": 1, "cmp-2": 4, "cmp-3": 4}}},
		{"same host", lease.AffinitySameHost, 3, []string{"cmp-1"},
			slotHealth{true, false, true, map[string]int{"cmp-2": 3}, map[string]int64{"cmp-2": 3}},
			slotHealth{true, false, true, map[string]int{"cmp-2": 3}, map[string]int64{"cmp-2": 3}}},
		{"different hosts", lease.AffinityDifferentHosts, 2, []string{"cmp-2"},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-3": 1}}},
		{"different hosts, without a free host", lease.AffinityDifferentHosts, 3, []string{"cmp-2"},
			slotHealth{true, true, false, map[string]int{"cmp-1": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-2": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-2": 1, "cmp-3": 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 3)
			d := instancesDraft(0, 1, c.amount)
			d.Reservations[0].Affinity = c.affinity
			l := e.createActiveForOneHour(d)
			down, up := map[string]bool{}, map[string]bool{}
			for _, host := range c.dies {
				down[host], up[host] = false, true
			}
			e.updateHostsAndHeal(down, time.Hour)
			if d := cmp.Diff(c.want, e.readSlotHealth(l)); d != "" {
				t.Error(d)
			}
			if r := e.readLease(l.ID).Reservations[0]; !r.CloudOutdated() {
				t.Error(
					"reservation after a host failed: got the old revision, want a new one for Nova and Neutron",
				)
			}
			e.updateHostsAndHeal(up, time.Hour)
			if d := cmp.Diff(c.returns, e.readSlotHealth(l)); d != "" {
				t.Errorf("health and slots after the host recovered (-want +got):\n%s", d)
			}
			e.updateHostsAndHeal(nil, time.Hour)
			if d := cmp.Diff(c.returns, e.readSlotHealth(l)); d != "" {
				t.Errorf("health and slots after healing without another failure (-want +got):\n%s", d)
			}
		})
	}
}

func TestReservationHeal_MovesSlotsOfPendingLeasesWithoutFlags(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(instancesDraft(1, 2, 4))
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, 0)
	if d := cmp.Diff(slotHealth{Slots: map[string]int{"cmp-2": 4}, Stock: map[string]int64{}}, e.readSlotHealth(l)); d != "" {
		t.Error(d)
	}
	e.updateHostsAndHeal(map[string]bool{"cmp-2": false}, 0)
	if d := cmp.Diff(slotHealth{
		Degraded: true,
		Missing:  true,
		Slots:    map[string]int{},
		Stock:    map[string]int64{},
	}, e.readSlotHealth(l)); d != "" {
		t.Error(d)
	}
	e.updateHostsAndHeal(map[string]bool{"cmp-1": true}, 0)
	if d := cmp.Diff(slotHealth{Slots: map[string]int{"cmp-1": 4}, Stock: map[string]int64{}}, e.readSlotHealth(l)); d != "" {
		t.Errorf("health and slots after the host recovered (-want +got):\n%s", d)
	}
}

// Servers on a failed host keep their allocations until the servers are evacuated. HealReservation must not
// wait for the evacuation, and Placement must not accept further allocations from the failed host.
func TestReservationHeal_ServersOnAFailedHostDoNotBlock(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveForOneHour(instancesDraft(0, 1, 4))
	r := l.Reservations[0].ID
	class, server := lease.ReservationResourceClass(r), uuid.NewString()
	on := func(consumer string, host int) inventory.ConsumerWrite {
		return inventory.ConsumerWrite{
			Consumer:    consumer,
			Project:     "p",
			User:        "u",
			Expect:      inventory.ExpectAbsent(),
			Allocations: inventory.Allocations{e.hosts[host].NestedProvider.String(): {class: 1}},
		}
	}
	storetest.Allocate(t, e.Store, on(server, 0))
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, time.Hour)
	if d := cmp.Diff(slotHealth{
		Degraded: true,
		Changed:  true,
		Slots:    map[string]int{"cmp-2": 4},
		Stock:    map[string]int64{"cmp-1": 4, "cmp-2": 4},
	}, e.readSlotHealth(l)); d != "" {
		t.Error(d)
	}
	e.addToInventory(l) // the lease's workflow calls this function before it updates Nova
	if err := e.Inventory.PutAllocations(t.Context(), on(uuid.NewString(), 0)); err == nil {
		t.Error("allocate from a failed host for another server: got no error, want one")
	}
	storetest.Allocate(t, e.Store, on(uuid.NewString(), 1))

	// the server is evacuated
	storetest.Allocate(t, e.Store, storetest.NoAllocations(server, inventory.ExpectGeneration(1)))
	e.addToInventory(l)
	if d := cmp.Diff(map[string]int64{"cmp-2": 4}, e.slotInventory(l)); d != "" {
		t.Error(d)
	}
}

// The servers of a reservation can run on a host that healing has replaced, until the end of the lease.
func TestReservationHeal_FormerHostsAreKeptUntilTheirServersAreDeleted(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"of a lease that ends": false, "of a deleted lease": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 3)
			l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
			pending := e.createLease(hostsDraft(30, 31, 1, 1))
			r := l.Reservations[0].ID
			hostOfLease := func() string { return fmt.Sprintf("cmp-%d", e.readHealth(l).Hosts[0]) }
			begin, first := time.Now(), hostOfLease()
			e.updateHostsAndHeal(map[string]bool{first: false}, 0)
			second := hostOfLease()
			e.updateHostsAndHeal(map[string]bool{second: false}, 0)
			check := func(when string, got []lease.FormerHost) {
				t.Helper()
				services := []string{}
				for _, h := range got {
					services = append(services, h.Service)
					if h.LeftAt.Before(begin.Add(-time.Minute)) || h.LeftAt.After(time.Now().Add(time.Minute)) {
						t.Errorf("%s: host %s was replaced at %s, want about %s", when, h.Service, h.LeftAt, begin)
					}
				}
				if d := cmp.Diff(slices.Sorted(slices.Values([]string{first, second})), services); d != "" {
					t.Errorf("former hosts %s (-want +got):\n%s", when, d)
				}
			}
			c, err := e.Lease.CloudReservation(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			check("while the lease is active", c.FormerHosts)

			step := lease.StepEnd
			if deleted {
				step = lease.StepDelete
				if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
					t.Fatal(err)
				}
			} else {
				e.makeDue(l)
				e.beginStep(l.ID, lease.StepBeforeEnd)
				e.finishStep(l.ID, lease.StepBeforeEnd, nil)
			}
			// as after an update of Nova, so that only the former hosts make the removal necessary
			storetest.Exec(t, e.url, `update reservation set shaped = shape where id = $1`, r)
			e.beginStep(l.ID, step)
			e.release(l)
			if _, err := e.Lease.FinishLease(t.Context(), l.ID, step, nil); err != nil {
				t.Fatal(err)
			}
			all := e.leftovers()
			if len(all) != 1 || all[0].ID != r || all[0].Project != "p" {
				t.Fatalf("leftovers: got %+v, want the reservation", all)
			}
			check("after the end", all[0].FormerHosts)

			if err := e.Lease.FinishLeftover(t.Context(), all[0], nil); err != nil {
				t.Fatal(err)
			}
			var left int
			if err := storetest.Connect(t, e.url).QueryRow(t.Context(), `select count(*) from reservation_former_host`).Scan(&left); err != nil || left != 0 {
				t.Errorf("former hosts after the removal, also of the pending lease %s: got %d, error %v; want none",
					pending.ID, left, err)
			}
		})
	}
}

// A host that operators no longer register is theirs, with all its servers.
func TestReservationHeal_FormerHostThatIsDeletedIsForgotten(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, 0)
	if err := e.Lease.DeleteHost(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil || len(c.FormerHosts) > 0 || len(c.ComputeHosts) != 1 {
		t.Errorf("reservation after its former host was deleted: got %+v, error %v; want only the current host", c, err)
	}
}

// The search for reservations whose hosts another lease still holds processes each allocation a few times,
// and not once for each earlier one on its host.
func TestUnhealthyReservations_WorkIsThatOfTheAllocations(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, storetest.CrowdedHosts+`;
		update lease set status = 'ACTIVE' where status = 'STARTING';
		insert into lease (id, name, user_id, project_id, status, start_at, end_at)
		select md5('whole' || n)::uuid, 'whole', 'u', 'p', 'PENDING', now() + n * interval '1 hour', now() + (n + 1) * interval '1 hour'
		from generate_series(1, 400) n;
		insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties,
			resource_properties, before_end)
		select id, id, 0, 'physical:host', 'pending', 50, 50, '', '', 'default' from lease where name = 'whole';
		insert into host_allocation (reservation_id, host_id, during, owner)
		select l.id, h.id, tstzrange(l.start_at, l.end_at), l.id from lease l cross join host h where l.name = 'whole'`)
	storetest.FixPlans(t, url)
	c := storetest.Connect(t, url)
	if _, err := c.Exec(t.Context(), `set jit = off; set random_page_cost = 1.1`); err != nil { // as berth does
		t.Fatal(err)
	}
	const allocations = (15*64 + 400) * 50
	rows := storetest.ExplainAnalyze(t, c, leasestore.UnhealthySQL, time.Hour, 100, lease.RecheckInterval).Processed()
	if rows < allocations/2 || rows > 10*allocations {
		t.Errorf("got %.0f rows processed for %d allocations, want at most 10 for each", rows, allocations)
	}
}
