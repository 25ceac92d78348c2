package leasestore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// instancesDraft asks for instances of which a host of the tests has room for four.
func instancesDraft(from, to, amount int) lease.Draft {
	d := hostsDraft(from, to, 1, 1)
	d.Reservations = []lease.ReservationDraft{{Type: lease.VirtualInstance, Amount: amount, VCPUs: 2, MemoryMB: 256, DiskGB: 1}}
	return d
}

func (t *leasing) slots(l lease.Lease) map[string]int {
	t.Helper()
	slots := map[string]int{}
	for _, h := range t.hosts {
		if n := t.read(l.ID).Reservations[0].Slots[h.ID]; n > 0 {
			slots[h.Hostname] = n
		}
	}
	return slots
}

func TestInstancesFillUsedHostsFirst(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 3)
	first := e.create(instancesDraft(1, 2, 1))
	more := instancesDraft(1, 2, 5)
	second := e.create(more)
	if d := cmp.Diff(map[string]int{"cmp-1": 3, "cmp-2": 2}, e.slots(second)); d != "" {
		t.Errorf("beside %v: %s", e.slots(first), d)
	}
	together := instancesDraft(1, 2, 3)
	together.Reservations[0].Affinity = lease.AffinitySameHost
	if d := cmp.Diff(map[string]int{"cmp-3": 3}, e.slots(e.create(together))); d != "" {
		t.Error(d)
	}
	apart := instancesDraft(1, 2, 2)
	apart.Reservations[0].Affinity = lease.AffinityDifferentHosts
	if d := cmp.Diff(map[string]int{"cmp-2": 1, "cmp-3": 1}, e.slots(e.create(apart))); d != "" {
		t.Error(d)
	}
	e.refused(apart, lease.NotEnoughHosts)
	e.create(instancesDraft(2, 3, 12)) // what touches does not overlap
}

func TestWholeHostsAndInstancesExcludeEachOther(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	e.create(instancesDraft(1, 2, 1))
	e.refused(hostsDraft(1, 2, 1, 1), lease.NotEnoughHosts)
	e.create(hostsDraft(3, 4, 1, 1))
	e.refused(instancesDraft(3, 4, 1), lease.NotEnoughHosts)
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `
		update host_allocation set during = tstzrange(now(), now() + interval '1 year')
		where owner <> reservation_id`)
	if err == nil {
		t.Error("the table gives a host to one alone and to others beside")
	}
}

func TestTheTableItselfRefusesInstancesWithoutRoom(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	l := e.create(instancesDraft(1, 3, 2))
	e.create(instancesDraft(2, 4, 2))
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `update host_allocation set slots = 3 where reservation_id = $1`, l.Reservations[0].ID)
	if err == nil {
		t.Error("five instances are where four have room")
	}
	if _, err = storetest.Connect(t, e.url).Exec(t.Context(), `
		update host_allocation set slots = 4, during = tstzrange(lower(during), lower(during) + interval '1 hour')
		where reservation_id = $1`, l.Reservations[0].ID); err != nil {
		t.Errorf("what the other has not begun to use is free: %v", err)
	}
}

func TestManyAtOnceGetEverySlotOnce(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	const slots, writers = 8, 12
	var all sync.WaitGroup
	errs := make(chan error, writers)
	for range writers {
		all.Go(func() {
			_, err := e.Lease.CreateLease(t.Context(), instancesDraft(1, 2, 1))
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	won := 0
	for err := range errs {
		if err == nil {
			won++
		} else if faultKind(err) != lease.NotEnoughHosts {
			t.Errorf("a loser got %v", err)
		}
	}
	if won != slots {
		t.Errorf("%d of %d slots are given away", won, slots)
	}
}

// stockOf is how much inventory of a reservation's class the nested providers of hosts have.
func (t *leasing) stockOf(l lease.Lease) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, h := range t.hosts {
		stock, err := t.Inventory.ProviderInventories(t.Context(), h.NestedProvider.String())
		if err != nil {
			t.Fatal(err)
		}
		if i, has := stock.Classes[lease.ReservationResourceClass(l.Reservations[0].ID)]; has {
			all[h.Hostname] = i.Total
		}
	}
	return all
}

func TestInstancesAreStockedWhileTheLeaseIsActive(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.active(instancesDraft(1, 2, 6))
	id, r := l.ID, l.Reservations[0].ID
	if d := cmp.Diff(map[string]int64{"cmp-1": 4, "cmp-2": 2}, e.stockOf(l)); d != "" {
		t.Error(d)
	}
	user := uuid.NewString()
	storetest.Allocate(t, e.Store, inventory.ConsumerWrite{Consumer: user, Project: "p", User: "u", Expect: inventory.ExpectAbsent(), Allocations: inventory.Allocations{
		e.hosts[0].NestedProvider.String(): {lease.ReservationResourceClass(r): 1}}})

	e.begin(id, lease.StepEnd)
	if err := e.Lease.RemoveFromInventory(t.Context(), r); faultKind(err) != lease.HostInUse {
		t.Errorf("slots went away under a server: %v", err)
	}
	storetest.Allocate(t, e.Store, storetest.NoAllocations(user, inventory.ExpectGeneration(1)))
	e.unwire(l)
	e.finish(id, lease.StepEnd, nil)
	if d := cmp.Diff(map[string]int64{}, e.stockOf(l)); d != "" {
		t.Error(d)
	}
	if _, err := e.Inventory.Class(t.Context(), lease.ReservationResourceClass(r)); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the class is left: %v", err)
	}
	e.create(instancesDraft(1, 2, 8))
}

func amount(l lease.Lease, n int) lease.Change {
	return lease.Change{Reservations: []lease.ReservationChange{{ID: l.Reservations[0].ID.String(), Amount: &n}}}
}

func TestInstancesOfAnActiveLeaseOnlyGrow(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.active(instancesDraft(1, 2, 3))
	storetest.Exec(t, e.url, `update lease set end_at = now() + interval '1 hour' where id = $1`, l.ID)
	l = e.update(l.ID, amount(l, 6))
	if d := cmp.Diff(map[string]int64{"cmp-1": 4, "cmp-2": 2}, e.stockOf(l)); d != "" {
		t.Error(d)
	}
	if due := lease.Next(l, l.EndAt.Add(-2*time.Hour)); !l.Reservations[0].CloudOutdated() || due.Step == lease.StepStop {
		t.Errorf("the cloud is not told: %+v", l.Reservations[0])
	}
	e.unchanged(l.ID, amount(l, 5), lease.CannotUpdate)
	e.unchanged(l.ID, amount(l, 9), lease.NotEnoughHosts)
	e.unchanged(l.ID, lease.Change{Reservations: []lease.ReservationChange{{ID: l.Reservations[0].ID.String(), VCPUs: new(int64(1))}}}, lease.CannotUpdate)

	pending := e.create(instancesDraft(3, 4, 8))
	pending = e.update(pending.ID, lease.Change{Reservations: []lease.ReservationChange{{ID: pending.Reservations[0].ID.String(),
		Amount: new(2), VCPUs: new(int64(8))}}})
	if d := cmp.Diff(map[string]int{"cmp-1": 1, "cmp-2": 1}, e.slots(pending)); d != "" {
		t.Error(d)
	}
}

func TestFlavorsTakeWhatInventoryOffers(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	generation, err := e.Inventory.Provider(t.Context(), e.hosts[1].Provider.String())
	if err != nil {
		t.Fatal(err)
	}
	twice := inventory.Inventory{Total: 8, Reserved: 1, MinUnit: 1, MaxUnit: 4, StepSize: 1, AllocationRatio: 2}
	if _, err := e.Inventory.ReplaceInventories(t.Context(), e.hosts[1].Provider.String(), generation.Generation,
		map[string]inventory.Inventory{"VCPU": twice, "MEMORY_MB": inventory.NewInventory(4096)}); err != nil {
		t.Fatal(err)
	}
	d := instancesDraft(1, 2, 7)
	d.Reservations = []lease.ReservationDraft{{Type: lease.FlavorInstance, Amount: 7, Flavor: &lease.Flavor{ID: "f", VCPUs: 2, MemoryMB: 512}}}
	if d := cmp.Diff(map[string]int{"cmp-1": 2, "cmp-2": 5}, e.slots(e.create(d))); d != "" {
		t.Error(d)
	}
	e.create(withAmount(d, 2))
	e.refused(withAmount(d, 1), lease.NotEnoughHosts)
	large := withAmount(d, 1)
	large.Start, large.End = lease.RequestedDate{At: hour(5)}, lease.RequestedDate{At: hour(6)}
	large.Reservations[0].Flavor = &lease.Flavor{ID: "g", VCPUs: 5, MemoryMB: 512} // more than the max_unit of cmp-2
	if d := cmp.Diff(map[string]int{"cmp-1": 1}, e.slots(e.create(large))); d != "" {
		t.Error(d)
	}
	picky := withAmount(large, 1)
	picky.Reservations[0].Flavor = &lease.Flavor{ID: "h", VCPUs: 1, ExtraSpecs: map[string]string{"trait:HW_CPU_X86_AVX": "required"}}
	e.refused(picky, lease.NotEnoughHosts)
}

func withAmount(d lease.Draft, n int) lease.Draft {
	d.Reservations = []lease.ReservationDraft{d.Reservations[0]}
	d.Reservations[0].Amount = n
	return d
}

// register makes addresses 172.24.4.10 and on of a new network reservable.
func (t *leasing) addresses(n int) uuid.UUID {
	t.Helper()
	nets, err := t.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: new("p"), Name: new("out")}})
	if err != nil {
		t.Fatal(err)
	}
	net := nets[0]
	if _, err := t.Network.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &net.ID, Project: new("p"), CIDR: new(netip.MustParsePrefix("172.24.4.0/24")),
		Pools: &[]network.Pool{{Start: netip.MustParseAddr("172.24.4.100"), End: netip.MustParseAddr("172.24.4.200")}}}}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := t.Lease.RegisterFloatingIP(t.Context(), net.ID, address(i)); err != nil {
			t.Fatal(err)
		}
	}
	return net.ID
}

func address(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("172.24.4.%d", 10+i)) }

func addressesDraft(network uuid.UUID, from, to, amount int, required ...netip.Addr) lease.Draft {
	d := hostsDraft(from, to, 1, 1)
	d.Reservations = []lease.ReservationDraft{{Type: lease.FloatingIP, Network: network, Amount: amount, Required: required}}
	return d
}

func TestFloatingIPsAreRegisteredWhereNobodyElseGivesThemAway(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 0)
	net := e.addresses(1)
	for ip, want := range map[string]lease.Kind{"172.24.4.1": lease.InvalidInput, "172.24.4.150": lease.InvalidInput,
		"10.0.0.1": lease.UnknownNetwork, "172.24.4.10": lease.AddressInUse} {
		if _, err := e.Lease.RegisterFloatingIP(t.Context(), net, netip.MustParseAddr(ip)); faultKind(err) != want {
			t.Errorf("%s: want %q, got %v", ip, want, err)
		}
	}
	if _, err := e.Lease.RegisterFloatingIP(t.Context(), uuid.New(), address(3)); faultKind(err) != lease.UnknownNetwork {
		t.Errorf("a network that nobody knows: %v", err)
	}
	all, err := e.Lease.FloatingIPs(t.Context())
	if err != nil || len(all) != 1 || all[0].IP != address(0) {
		t.Fatalf("%+v, %v", all, err)
	}
	l := e.create(addressesDraft(net, 1, 2, 1))
	if err := e.Lease.DeleteFloatingIP(t.Context(), all[0].ID); faultKind(err) != lease.AddressInUse {
		t.Errorf("a reserved address goes: %v", err)
	}
	e.delete(l.ID)
	if err := e.Lease.DeleteFloatingIP(t.Context(), all[0].ID); err != nil {
		t.Error(err)
	}
	if err := e.Lease.DeleteFloatingIP(t.Context(), all[0].ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("want ErrNotFound, got %v", err)
	}
}

func TestFloatingIPsAreHadByOneAtATime(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 0)
	net := e.addresses(3)
	a := e.create(addressesDraft(net, 1, 2, 2, address(1)))
	if d := cmp.Diff([]netip.Addr{address(0), address(1)}, a.Reservations[0].Addresses, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	e.refused(addressesDraft(net, 1, 2, 1, address(1)), lease.NotEnoughAddresses)
	e.refused(addressesDraft(net, 1, 2, 2), lease.NotEnoughAddresses)
	b := e.create(addressesDraft(net, 1, 2, 1))
	e.create(addressesDraft(net, 2, 3, 3))
	e.unchanged(a.ID, until(3), lease.NotEnoughAddresses)
	e.unchanged(a.ID, amount(a, 3), lease.NotEnoughAddresses)
	a = e.update(a.ID, lease.Change{Reservations: []lease.ReservationChange{{ID: a.Reservations[0].ID.String(), Amount: new(1), Required: &[]netip.Addr{}}}})
	if len(a.Reservations[0].Addresses) != 1 || len(a.Reservations[0].Required) != 0 {
		t.Errorf("%+v", a.Reservations[0])
	}
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `
		update floatingip_allocation set floatingip_id = (select floatingip_id from floatingip_allocation where reservation_id = $1)
		where reservation_id = $2`, a.Reservations[0].ID, b.Reservations[0].ID)
	if err == nil {
		t.Error("the table gives one address to two")
	}
}

func TestFloatingIPsAreFreeAfterTheEnd(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 0)
	net := e.addresses(1)
	l := e.active(addressesDraft(net, 1, 2, 1))
	e.begin(l.ID, lease.StepEnd)
	e.unwire(l)
	if l = e.finish(l.ID, lease.StepEnd, nil); len(l.Reservations[0].Addresses) != 0 {
		t.Errorf("%+v", l.Reservations[0])
	}
	e.create(addressesDraft(net, 1, 2, 1))
}

// TestHostsThatManyShareAreLockedInOneOrder: two who take crowds of leases at once do not lie in wait for each other.
func TestHostsThatManyShareAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	second, first := e.create(instancesDraft(1, 2, 4)), e.create(instancesDraft(1, 2, 4)) // all of one host each
	for _, l := range []lease.Lease{second, first} {
		e.startDue(l)
	}
	storetest.Exec(t, e.url, `update lease set created_at = created_at - interval '1 hour' where id = $1`, first.ID)
	lock := func(host int, more string) string {
		return fmt.Sprintf(`select from provider where uuid = '%s' for no key update %s`, e.hosts[host].NestedProvider, more)
	}
	for range 2 {
		err := storetest.NewRival(t, e.url).RunAgainst(func() error {
			got, err := e.sweepOnce(nil)
			if got.begun != 2 || got.finished != 2 {
				t.Errorf("%d begun, %d finished", got.begun, got.finished)
			}
			return err
		}, lock(0, ""), lock(1, "nowait"))
		if err != nil {
			t.Error(err)
		}
		storetest.Exec(t, e.url, `update event set at = now() - interval '1 hour', status = case event_type when 'before_end_lease' then 'DONE' else status end`)
	}
	e.is(first, lease.Terminated)
}
