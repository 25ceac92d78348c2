package leasestore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// see notes which hosts are up and heals what ails within the horizon.
func (t *leasing) see(up map[string]bool, horizon time.Duration) (healed int) {
	t.Helper()
	if _, _, err := t.Lease.UpdateHostStates(t.Context(), up); err != nil {
		t.Fatal(err)
	}
	ailing, err := t.Lease.UnhealthyReservations(t.Context(), horizon, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range ailing {
		if err := t.Lease.HealReservation(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return len(ailing)
}

// health is a lease's flags and hosts.
type health struct {
	Degraded, Missing, Changed bool
	Hosts                      []int64
}

func (t *leasing) health(l lease.Lease) health {
	t.Helper()
	l = t.read(l.ID)
	r := l.Reservations[0]
	return health{l.Degraded, r.MissingResources, r.ResourcesChanged, r.Hosts}
}

func (t *leasing) healthy(l lease.Lease, want health) {
	t.Helper()
	if d := cmp.Diff(want, t.health(l)); d != "" {
		t.Error(d)
	}
}

// lasting makes an active lease that ends in an hour.
func (t *leasing) lasting(d lease.Draft) lease.Lease {
	t.Helper()
	d.Start, d.End = lease.RequestedDate{Now: true}, lease.RequestedDate{At: hour(1)}
	l := t.create(d)
	t.begin(l.ID, lease.StepStart)
	t.wire(l)
	return t.finish(l.ID, lease.StepStart, nil)
}

func TestHostThatDiesIsReplacedInAnActiveLease(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}, Notifications: true})
	l := e.lasting(hostsDraft(0, 1, 1, 1))
	e.healthy(l, health{Hosts: []int64{1}})
	down := map[string]bool{"cmp-1": false, "nobody": false}

	failed, recovered, err := e.Lease.UpdateHostStates(t.Context(), down)
	if len(failed) != 1 || len(recovered) != 0 || err != nil {
		t.Errorf("failed %v, recovered %v, %v", failed, recovered, err)
	}
	if n := e.see(down, time.Hour); n != 1 {
		t.Errorf("%d ailed", n)
	}

	e.healthy(l, health{Degraded: true, Changed: true, Hosts: []int64{2}})
	if d := cmp.Diff([]string{"cmp-2"}, e.held(l.Reservations[0].ID)); d != "" {
		t.Errorf("in inventory: %s", d)
	}
	if all, _ := e.told(l.ID); all[len(all)-1] != "lease.health ACTIVE" {
		t.Errorf("told %v", all)
	}
	e.refused(hostsDraft(0, 1, 1, 1), lease.NotEnoughHosts) // the dead one is leased to nobody
	if n := e.see(map[string]bool{"cmp-1": true}, time.Hour); n != 0 {
		t.Errorf("%d still ail", n)
	}
	e.healthy(l, health{Degraded: true, Changed: true, Hosts: []int64{2}})
	e.see(map[string]bool{"cmp-2": false}, time.Hour)
	e.healthy(l, health{Degraded: true, Changed: true, Hosts: []int64{1}})
	if all, _ := e.told(l.ID); !slices.Equal(all[len(all)-2:], []string{"lease.health ACTIVE", "lease.health ACTIVE"}) {
		t.Errorf("nobody hears that it is replaced once more: %v", all)
	}
}

func TestReservationThatLacksAHostGetsItBack(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.lasting(hostsDraft(0, 1, 2, 2))

	e.see(map[string]bool{"cmp-1": false}, time.Hour)
	e.healthy(l, health{Degraded: true, Missing: true, Hosts: []int64{2}})
	if d := cmp.Diff([]string{"cmp-2"}, e.held(l.Reservations[0].ID)); d != "" {
		t.Errorf("in inventory: %s", d)
	}
	e.see(nil, time.Hour) // there is nothing to be had
	e.healthy(l, health{Degraded: true, Missing: true, Hosts: []int64{2}})
	e.see(map[string]bool{"cmp-1": true}, time.Hour)
	e.healthy(l, health{Degraded: true, Changed: true, Hosts: []int64{1, 2}})
	if d := cmp.Diff([]string{"cmp-1", "cmp-2"}, e.held(l.Reservations[0].ID)); d != "" {
		t.Errorf("in inventory: %s", d)
	}
}

func TestLeaseToComeIsHealedInSilenceAndInTime(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 3)
	soon, late := e.create(hostsDraft(1, 2, 1, 1)), e.create(hostsDraft(30, 31, 2, 2))
	lost := map[string]bool{"cmp-1": false, "cmp-2": false}
	hosts := e.health(late).Hosts

	e.see(lost, 3*time.Hour)
	if got := e.health(soon); got.Degraded || len(got.Hosts) != 1 || got.Hosts[0] != 3 {
		t.Errorf("a lease that has not begun: %+v", got)
	}
	e.healthy(late, health{Hosts: hosts})
	e.see(nil, 0)
	if got := e.health(late); !got.Degraded || !got.Missing || got.Changed || len(got.Hosts) != 1 {
		t.Errorf("without a horizon: %+v", got)
	}
	end := lease.RequestedDate{At: hour(32)}
	e.see(map[string]bool{"cmp-1": true, "cmp-2": true}, time.Hour)
	if _, err := e.Lease.UpdateLease(t.Context(), late.ID, lease.Change{End: &end}); err != nil {
		t.Fatal(err)
	}
	if got := e.health(late); got.Degraded || got.Missing || len(got.Hosts) != 2 {
		t.Errorf("a change that booked what was missing: %+v", got)
	}
}

// What is left of a lease can always be given back earlier, or warned of at another time.
func TestLeaseThatLacksSomethingCanBeShortened(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]lease.Draft{"hosts": hostsDraft(0, 1, 2, 2), "instances": instancesDraft(0, 1, 8)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newLeasing(t, 2)
			l := e.lasting(d)
			e.see(map[string]bool{"cmp-1": false}, time.Hour)
			want := health{Degraded: true, Missing: true, Hosts: []int64{2}}
			e.healthy(l, want)
			shape := e.read(l.ID).Reservations[0].Revision

			warned := time.Now().UTC().Add(20 * time.Minute).Truncate(time.Second)
			e.update(l.ID, lease.Change{BeforeEnd: &warned})
			half := time.Now().UTC().Add(30 * time.Minute).Truncate(time.Second)
			if got := e.update(l.ID, lease.Change{End: &lease.RequestedDate{At: half}}); !got.EndAt.Equal(half) {
				t.Errorf("ends at %s", got.EndAt)
			}
			e.healthy(l, want)
			e.unchanged(l.ID, until(1), lease.NotEnoughHosts)
			later := hostsDraft(0, 2, 1, 1)
			later.Start = lease.RequestedDate{At: half}
			e.create(later) // who comes next has what it left
			e.update(l.ID, lease.Change{End: &lease.RequestedDate{Now: true}})
			if r := e.read(l.ID).Reservations[0]; r.Revision != shape {
				t.Error("the cloud hears of something that has not changed")
			}
		})
	}
}

func TestLeaseOnItsWayIsNotHealed(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.create(hostsDraft(1, 2, 1, 1))
	ailing := lease.UnhealthyReservation{Reservation: l.Reservations[0].ID, Host: l.Reservations[0].Hosts[0]}
	if err := e.Lease.HealReservation(t.Context(), ailing); err != nil { // it has recovered by now
		t.Fatal(err)
	}
	e.healthy(l, health{Hosts: []int64{1}})
	e.due(l)
	storetest.Exec(t, e.url, `update lease set end_at = now() + interval '1 hour'`)
	storetest.Exec(t, e.url, `update host set reservable = false where id = 1`)
	e.begin(l.ID, lease.StepStart)
	if n := e.see(nil, 0); n != 0 {
		t.Errorf("%d ail", n)
	}
	if err := e.Lease.HealReservation(t.Context(), ailing); err != nil {
		t.Fatal(err)
	}
	e.healthy(l, health{Hosts: []int64{1}})
}

// slotHealth is a lease's flags and slots by host, and what inventory has of it.
type slotHealth struct {
	Degraded, Missing, Changed bool
	Slots                      map[string]int
	Stock                      map[string]int64
}

func (t *leasing) slotHealth(l lease.Lease) slotHealth {
	t.Helper()
	now := t.read(l.ID)
	return slotHealth{now.Degraded, now.Reservations[0].MissingResources, now.Reservations[0].ResourcesChanged, t.slots(l), t.stockOf(l)}
}

func TestInstancesOfAHostThatDiesGetRoomElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		affinity lease.Affinity
		amount   int
		dies     []string
		want     slotHealth
		returns  slotHealth
	}{
		{"anywhere", lease.AffinityNone, 5, []string{"cmp-2"},
			slotHealth{true, false, true, map[string]int{"cmp-1": 4, "cmp-3": 1}, map[string]int64{"cmp-1": 4, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 4, "cmp-3": 1}, map[string]int64{"cmp-1": 4, "cmp-3": 1}}},
		{"anywhere, and there is no room", lease.AffinityNone, 9, []string{"cmp-1"},
			slotHealth{true, true, false, map[string]int{"cmp-2": 4, "cmp-3": 1}, map[string]int64{"cmp-2": 4, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-2": 4, "cmp-3": 4}, map[string]int64{"cmp-1": 1, "cmp-2": 4, "cmp-3": 4}}},
		{"all together", lease.AffinitySameHost, 3, []string{"cmp-1"},
			slotHealth{true, false, true, map[string]int{"cmp-2": 3}, map[string]int64{"cmp-2": 3}},
			slotHealth{true, false, true, map[string]int{"cmp-2": 3}, map[string]int64{"cmp-2": 3}}},
		{"each apart", lease.AffinityDifferentHosts, 2, []string{"cmp-2"},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-3": 1}}},
		{"each apart, and nobody is left", lease.AffinityDifferentHosts, 3, []string{"cmp-2"},
			slotHealth{true, true, false, map[string]int{"cmp-1": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-3": 1}},
			slotHealth{true, false, true, map[string]int{"cmp-1": 1, "cmp-2": 1, "cmp-3": 1}, map[string]int64{"cmp-1": 1, "cmp-2": 1, "cmp-3": 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newLeasing(t, 3)
			d := instancesDraft(0, 1, c.amount)
			d.Reservations[0].Affinity = c.affinity
			l := e.lasting(d)
			down, up := map[string]bool{}, map[string]bool{}
			for _, host := range c.dies {
				down[host], up[host] = false, true
			}
			e.see(down, time.Hour)
			if d := cmp.Diff(c.want, e.slotHealth(l)); d != "" {
				t.Error(d)
			}
			if r := e.read(l.ID).Reservations[0]; !r.CloudOutdated() {
				t.Error("the cloud will not hear of it")
			}
			e.see(up, time.Hour)
			if d := cmp.Diff(c.returns, e.slotHealth(l)); d != "" {
				t.Errorf("it is back: %s", d)
			}
			e.see(nil, time.Hour)
			if d := cmp.Diff(c.returns, e.slotHealth(l)); d != "" {
				t.Errorf("it moved without need: %s", d)
			}
		})
	}
}

func TestInstancesToComeAreMovedInSilence(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.create(instancesDraft(1, 2, 4))
	e.see(map[string]bool{"cmp-1": false}, 0)
	if d := cmp.Diff(slotHealth{Slots: map[string]int{"cmp-2": 4}, Stock: map[string]int64{}}, e.slotHealth(l)); d != "" {
		t.Error(d)
	}
	e.see(map[string]bool{"cmp-2": false}, 0)
	if d := cmp.Diff(slotHealth{Degraded: true, Missing: true, Slots: map[string]int{}, Stock: map[string]int64{}}, e.slotHealth(l)); d != "" {
		t.Error(d)
	}
	e.see(map[string]bool{"cmp-1": true}, 0)
	if d := cmp.Diff(slotHealth{Slots: map[string]int{"cmp-1": 4}, Stock: map[string]int64{}}, e.slotHealth(l)); d != "" {
		t.Errorf("it is back: %s", d)
	}
}

// Servers of a dead host stay in the books until somebody evacuates them. Nobody waits for that, and no more come.
func TestServersOnADeadHostHoldNobodyUp(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.lasting(instancesDraft(0, 1, 4))
	r := l.Reservations[0].ID
	class, server := lease.ReservationResourceClass(r), uuid.NewString()
	on := func(consumer string, host int) inventory.ConsumerWrite {
		return inventory.ConsumerWrite{Consumer: consumer, Project: "p", User: "u", Expect: inventory.ExpectAbsent(),
			Allocations: inventory.Allocations{e.hosts[host].NestedProvider.String(): {class: 1}}}
	}
	storetest.Allocate(t, e.Store, on(server, 0))
	e.see(map[string]bool{"cmp-1": false}, time.Hour)
	if d := cmp.Diff(slotHealth{Degraded: true, Changed: true, Slots: map[string]int{"cmp-2": 4}, Stock: map[string]int64{"cmp-1": 4, "cmp-2": 4}}, e.slotHealth(l)); d != "" {
		t.Error(d)
	}
	e.wire(l) // as the lease's workflow does, before it tells the cloud
	if err := e.Inventory.PutAllocations(t.Context(), on(uuid.NewString(), 0)); err == nil {
		t.Error("the dead host takes one more")
	}
	storetest.Allocate(t, e.Store, on(uuid.NewString(), 1))

	storetest.Allocate(t, e.Store, storetest.NoAllocations(server, inventory.ExpectGeneration(1))) // it is evacuated
	e.wire(l)
	if d := cmp.Diff(map[string]int64{"cmp-2": 4}, e.stockOf(l)); d != "" {
		t.Error(d)
	}
}
