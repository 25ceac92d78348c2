package leasestore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

// readHosts stores one reading of the states of hosts.
func (t *fixture) readHosts(all ...lease.Hypervisor) lease.HostStates {
	t.Helper()
	states, err := t.Lease.UpdateHostStates(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// inState returns the hypervisors of enabled hosts that are all up or all silent.
func inState(up bool, names ...string) (all []lease.Hypervisor) {
	for _, name := range names {
		all = append(all, lease.Hypervisor{Hostname: name, Up: up, Silent: !up})
	}
	return all
}

// While its message queue or its database stalls, Nova shows every hypervisor as down.
func TestHostFailure_ManyHostsThatAreDownTogetherStayInTheirLeases(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 5)
	leases := []lease.Lease{
		e.createActiveForOneHour(hostsDraft(0, 1, 1, 1)),
		e.createActiveForOneHour(hostsDraft(0, 1, 1, 1)),
	}
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, time.Hour)
	before := []health{e.readHealth(leases[0]), e.readHealth(leases[1])}
	want := []health{{Degraded: true, Changed: true, Hosts: []int64{3}}, {Hosts: []int64{2}}}
	if d := cmp.Diff(want, before); d != "" {
		t.Fatalf("leases after a failure (-want +got):\n%s", d)
	}

	e.updateHostsAndHeal(map[string]bool{"cmp-1": false, "cmp-2": false, "cmp-3": false, "cmp-4": false}, time.Hour)
	for i, l := range leases {
		e.expectHealth(l, before[i])
	}
	states := e.readHosts(inState(false, "cmp-1", "cmp-2", "cmp-3", "cmp-4")...)
	if states.Suspended != 3 || len(states.Failed) > 0 {
		t.Errorf("a further reading: got %+v, want 3 hosts that do not fail", states)
	}
	if u, err := e.Lease.Unfinished(t.Context()); err != nil || u.SuspendedHosts != 3 {
		t.Errorf("unfinished work: got %+v, error %v; want 3 hosts that are down together", u, err)
	}
	e.expectCreateFault(hostsDraft(0, 1, 2, 2), lease.NotEnoughHosts) // hosts that are down are not reservable

	// after Nova has recovered, one host is still down
	for i := range lease.ReadingsAfterOutage {
		e.Lease = leasestore.New(e.DB, leasestore.Config{}) // as after a restart
		states = e.readHosts(slices.Concat(inState(false, "cmp-1", "cmp-2"), inState(true, "cmp-3", "cmp-4"))...)
		if got := len(states.Failed) > 0; got != (i == lease.ReadingsAfterOutage-1) {
			t.Errorf("reading %d after Nova has recovered: got %+v, want a failure at the last one", i, states)
		}
	}
	if u, err := e.Lease.Unfinished(t.Context()); err != nil || u.SuspendedHosts != 0 {
		t.Errorf("unfinished work: got %+v, error %v; want no host that is down together with others", u, err)
	}
	e.heal(time.Hour)
	e.expectHealth(leases[0], before[0])
	e.expectHealth(leases[1], health{Degraded: true, Changed: true, Hosts: []int64{4}})
}

// Operators disable hosts for maintenance, also many at once. Nova still hears from them.
func TestHostFailure_DisabledHostsAreNoFailureOfNova(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 5)
	l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	var disabled []lease.Hypervisor
	for _, name := range []string{"cmp-1", "cmp-2", "cmp-3"} {
		disabled = append(disabled, lease.Hypervisor{Hostname: name})
	}
	states := e.readHosts(disabled...)
	if d := cmp.Diff(lease.HostStates{Failed: []string{"cmp-1", "cmp-2", "cmp-3"}}, states); d != "" {
		t.Errorf("reading in which three of five hosts are disabled (-want +got):\n%s", d)
	}
	states = e.readHosts(append(disabled, inState(false, "cmp-4")...)...)
	if d := cmp.Diff(lease.HostStates{Failed: []string{"cmp-4"}}, states); d != "" {
		t.Errorf("reading in which a fourth host is silent (-want +got):\n%s", d)
	}
	e.heal(time.Hour)
	e.expectHealth(l, health{Degraded: true, Changed: true, Hosts: []int64{5}})
	states = e.readHosts(inState(true, "cmp-1", "cmp-2", "cmp-3", "cmp-4")...)
	if d := cmp.Diff(lease.HostStates{Recovered: []string{"cmp-1", "cmp-2", "cmp-3", "cmp-4"}}, states); d != "" {
		t.Errorf("reading in which all hosts are up again (-want +got):\n%s", d)
	}
}
