package leasestore_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// instancesDraft returns the draft of a lease with a reservation of `amount` instances. Each host of a test
// fixture has capacity for four instances of this draft.
func instancesDraft(from, to, amount int) lease.Draft {
	d := hostsDraft(from, to, 1, 1)
	d.Reservations = []lease.ReservationDraft{
		{
			Type:     lease.VirtualInstance,
			Amount:   amount,
			VCPUs:    2,
			MemoryMB: 256,
			DiskGB:   1,
		},
	}
	return d
}

func (t *fixture) slotsByHost(l lease.Lease) map[string]int {
	t.Helper()
	slots := map[string]int{}
	for _, h := range t.hosts {
		if n := t.readLease(l.ID).Reservations[0].Slots[h.ID]; n > 0 {
			slots[h.Hostname] = n
		}
	}
	return slots
}

func TestInstanceResource_FillsUsedHostsFirst(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	first := e.createLease(instancesDraft(1, 2, 1))
	more := instancesDraft(1, 2, 5)
	second := e.createLease(more)
	if d := cmp.Diff(map[string]int{"cmp-1": 3, "cmp-2": 2}, e.slotsByHost(second)); d != "" {
		t.Errorf(
			"slots of the second lease by host, beside the slots %v of the first lease (-want +got):\n%s",
			e.slotsByHost(first),
			d,
		)
	}
	together := instancesDraft(1, 2, 3)
	together.Reservations[0].Affinity = lease.AffinitySameHost
	if d := cmp.Diff(map[string]int{"cmp-3": 3}, e.slotsByHost(e.createLease(together))); d != "" {
		t.Error(d)
	}
	apart := instancesDraft(1, 2, 2)
	apart.Reservations[0].Affinity = lease.AffinityDifferentHosts
	if d := cmp.Diff(map[string]int{"cmp-2": 1, "cmp-3": 1}, e.slotsByHost(e.createLease(apart))); d != "" {
		t.Error(d)
	}
	e.expectCreateFault(apart, lease.NotEnoughHosts)
	e.createLease(instancesDraft(2, 3, 12)) // adjacent dates do not overlap
}

func TestInstanceResource_ExcludesPhysicalHostReservations(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.createLease(instancesDraft(1, 2, 1))
	e.expectCreateFault(hostsDraft(1, 2, 1, 1), lease.NotEnoughHosts)
	e.createLease(hostsDraft(3, 4, 1, 1))
	e.expectCreateFault(instancesDraft(3, 4, 1), lease.NotEnoughHosts)
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `
		update host_allocation set during = tstzrange(now(), now() + interval '1 year')
		where owner <> reservation_id`)
	if err == nil {
		t.Error(
			"allocate a host to a physical:host reservation and to instances at the same time by SQL: got no error, want the table to reject it",
		)
	}
}

func TestHostAllocation_TableRejectsTooManySlots(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(instancesDraft(1, 3, 2))
	e.createLease(instancesDraft(2, 4, 2))
	_, err := storetest.Connect(t, e.url).
		Exec(t.Context(), `update host_allocation set slots = 3 where reservation_id = $1`, l.Reservations[0].ID)
	if err == nil {
		t.Error(
			"allocate by SQL five slots of a host that has only four: got no error, want the table to reject it",
		)
	}
	if _, err = storetest.Connect(t, e.url).Exec(t.Context(), `
		update host_allocation set slots = 4, during = tstzrange(lower(during), lower(during) + interval '1 hour')
		where reservation_id = $1`, l.Reservations[0].ID); err != nil {
		t.Errorf("allocate all slots of a host until the other lease starts: got error %v, want none", err)
	}
}

func TestInstanceResource_ConcurrentCreationsGetEverySlotOnce(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
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
			t.Errorf("create one of several leases concurrently: got error %v, want none or a fault of kind NotEnoughHosts", err)
		}
	}
	if won != slots {
		t.Errorf("slots allocated by concurrent creations: got %d, want %d", won, slots)
	}
}

// slotInventory returns, by hostname, the total of the inventory of the reservation's own resource class.
func (t *fixture) slotInventory(l lease.Lease) map[string]int64 {
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

func TestInstanceResource_InventoryExistsWhileTheLeaseIsActive(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActive(instancesDraft(1, 2, 6))
	id, r := l.ID, l.Reservations[0].ID
	if d := cmp.Diff(map[string]int64{"cmp-1": 4, "cmp-2": 2}, e.slotInventory(l)); d != "" {
		t.Error(d)
	}
	user := uuid.NewString()
	storetest.Allocate(t, e.Store, inventory.ConsumerWrite{
		Consumer: user,
		Project:  "p",
		User:     "u",
		Expect:   inventory.ExpectAbsent(),
		Allocations: inventory.Allocations{
			e.hosts[0].NestedProvider.String(): {lease.ReservationResourceClass(r): 1}},
	})

	e.beginStep(id, lease.StepEnd)
	if err := e.Lease.ReleaseReservation(t.Context(), r); faultKind(err) != lease.HostInUse {
		t.Errorf(
			"remove a reservation with a server from Placement: got error %v, want a fault of kind HostInUse",
			err,
		)
	}
	storetest.Allocate(t, e.Store, storetest.NoAllocations(user, inventory.ExpectGeneration(1)))
	e.release(l)
	e.finishStep(id, lease.StepEnd, nil)
	if d := cmp.Diff(map[string]int64{}, e.slotInventory(l)); d != "" {
		t.Error(d)
	}
	_, err := e.Inventory.Class(t.Context(), lease.ReservationResourceClass(r))
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("read the resource class of an ended reservation: got error %v, want ErrNotFound", err)
	}
	e.createLease(instancesDraft(1, 2, 8))
}

func amountChange(l lease.Lease, n int) lease.Change {
	return lease.Change{
		Reservations: []lease.ReservationChange{{ID: l.Reservations[0].ID.String(), Amount: &n}},
	}
}

func TestInstanceResource_ActiveReservationOnlyGrows(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActive(instancesDraft(1, 2, 3))
	storetest.Exec(t, e.url, `update lease set end_at = now() + interval '1 hour' where id = $1`, l.ID)
	l = e.updateLease(l.ID, amountChange(l, 6))
	if d := cmp.Diff(map[string]int64{"cmp-1": 4, "cmp-2": 2}, e.slotInventory(l)); d != "" {
		t.Error(d)
	}
	if due := lease.Next(l, l.EndAt.Add(-2*time.Hour)); !l.Reservations[0].CloudOutdated() ||
		due.Step == lease.StepStop {
		t.Errorf(
			"active reservation after it grew: got %+v, want it marked as changed, so that the changes are sent to Nova and Neutron",
			l.Reservations[0],
		)
	}
	e.expectUpdateFault(l.ID, amountChange(l, 5), lease.CannotUpdate)
	e.expectUpdateFault(l.ID, amountChange(l, 9), lease.NotEnoughHosts)
	e.expectUpdateFault(l.ID, lease.Change{
		Reservations: []lease.ReservationChange{
			{ID: l.Reservations[0].ID.String(), VCPUs: new(int64(1))},
		},
	}, lease.CannotUpdate)

	pending := e.createLease(instancesDraft(3, 4, 8))
	pending = e.updateLease(
		pending.ID,
		lease.Change{Reservations: []lease.ReservationChange{{ID: pending.Reservations[0].ID.String(),
			Amount: new(2), VCPUs: new(int64(8))}}},
	)
	if d := cmp.Diff(map[string]int{"cmp-1": 1, "cmp-2": 1}, e.slotsByHost(pending)); d != "" {
		t.Error(d)
	}
}

func TestInstanceResource_FlavorUsesCapacityOfInventory(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	generation, err := e.Inventory.Provider(t.Context(), e.hosts[1].Provider.String())
	if err != nil {
		t.Fatal(err)
	}
	twice := inventory.Inventory{
		Total:           8,
		Reserved:        1,
		MinUnit:         1,
		MaxUnit:         4,
		StepSize:        1,
		AllocationRatio: 2,
	}
	if _, err := e.Inventory.ReplaceInventories(t.Context(), e.hosts[1].Provider.String(), generation.Generation,
		map[string]inventory.Inventory{"VCPU": twice, "MEMORY_MB": inventory.NewInventory(4096)}); err != nil {
		t.Fatal(err)
	}
	d := instancesDraft(1, 2, 7)
	d.Reservations = []lease.ReservationDraft{
		{Type: lease.FlavorInstance, Amount: 7, Flavor: &lease.Flavor{ID: "f", VCPUs: 2, MemoryMB: 512}},
	}
	if d := cmp.Diff(map[string]int{"cmp-1": 2, "cmp-2": 5}, e.slotsByHost(e.createLease(d))); d != "" {
		t.Error(d)
	}
	e.createLease(withAmount(d, 2))
	e.expectCreateFault(withAmount(d, 1), lease.NotEnoughHosts)
	large := withAmount(d, 1)
	large.Start, large.End = lease.RequestedDate{At: hour(5)}, lease.RequestedDate{At: hour(6)}
	// more than the max_unit of cmp-2
	large.Reservations[0].Flavor = &lease.Flavor{
		ID:       "g",
		VCPUs:    5,
		MemoryMB: 512,
	}
	if d := cmp.Diff(map[string]int{"cmp-1": 1}, e.slotsByHost(e.createLease(large))); d != "" {
		t.Error(d)
	}
	picky := withAmount(large, 1)
	picky.Reservations[0].Flavor = &lease.Flavor{
		ID:         "h",
		VCPUs:      1,
		ExtraSpecs: map[string]string{"trait:HW_CPU_X86_AVX": "required"},
	}
	e.expectCreateFault(picky, lease.NotEnoughHosts)
}

// A lease that reserves instances of a flavor changes its dates under the same rules as a lease that reserves
// hosts: a pending lease moves to free hosts, an active lease keeps its hosts, and nothing changes if other
// leases use the capacity.
func TestInstanceResource_FlavorLeaseChangesItsDates(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	d := instancesDraft(3, 4, 1)
	d.Reservations = []lease.ReservationDraft{
		{Type: lease.FlavorInstance, Amount: 1, Flavor: &lease.Flavor{ID: "f", VCPUs: 8, MemoryMB: 512}},
	}
	other := e.createLease(d)
	d.Start, d.End = lease.RequestedDate{At: hour(1)}, lease.RequestedDate{At: hour(2)}
	l := e.createLease(d)
	dates := func(start, end int) lease.Change {
		return lease.Change{
			Start: &lease.RequestedDate{At: hour(start)},
			End:   &lease.RequestedDate{At: hour(end)},
		}
	}
	update := func(id uuid.UUID, c lease.Change) lease.Lease {
		t.Helper()
		is, err := e.Lease.UpdateLease(t.Context(), id, c)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if d := cmp.Diff(map[string]int{"cmp-1": 1}, e.slotsByHost(l)); d != "" {
		t.Error(d)
	}
	l = update(l.ID, dates(2, 5))
	if d := cmp.Diff(map[string]int{"cmp-2": 1}, e.slotsByHost(l)); d != "" || !l.StartAt.Equal(hour(2)) ||
		!l.EndAt.Equal(hour(5)) {
		t.Errorf(
			"lease with new dates at which its host is taken: got %v to %v; hosts (-want +got):\n%s",
			l.StartAt, l.EndAt, d,
		)
	}
	third := e.createLease(withAmount(instancesDraftOf(d, 6, 7), 2))
	e.expectUpdateFault(other.ID, dates(3, 7), lease.NotEnoughHosts)
	if d := cmp.Diff(other, e.readLease(other.ID)); d != "" {
		t.Errorf("lease after a refused change (-want +got):\n%s", d)
	}

	active := e.createActiveForOneHour(instancesDraftOf(d, 0, 1))
	update(active.ID, lease.Change{End: &lease.RequestedDate{At: hour(2)}})
	if d := cmp.Diff(map[string]int{"cmp-1": 1}, e.slotsByHost(e.readLease(active.ID))); d != "" {
		t.Errorf("hosts of an active lease with a later end (-want +got):\n%s", d)
	}
	// cmp-1 is taken at hour 3
	e.expectUpdateFault(active.ID,
		lease.Change{End: &lease.RequestedDate{At: hour(4)}}, lease.NotEnoughHosts)
	e.expectUpdateFault(active.ID, lease.Change{Start: &lease.RequestedDate{At: hour(1)}}, lease.InvalidInput)
	update(active.ID, lease.Change{End: &lease.RequestedDate{At: hour(1)}})
	e.deleteLease(third.ID)
}

// instancesDraftOf returns the draft with other dates.
func instancesDraftOf(d lease.Draft, start, end int) lease.Draft {
	d.Start, d.End = lease.RequestedDate{At: hour(start)}, lease.RequestedDate{At: hour(end)}
	d.Reservations = slices.Clone(d.Reservations)
	return d
}

func withAmount(d lease.Draft, n int) lease.Draft {
	d.Reservations = []lease.ReservationDraft{d.Reservations[0]}
	d.Reservations[0].Amount = n
	return d
}

// If several leases share hosts, a round that advances these leases must lock the hosts in the order of their
// providers' IDs, so that it does not deadlock with a competing transaction.
func TestInstanceResource_LocksSharedHostsInOneOrder(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	// each lease uses one host
	second := e.createLease(instancesDraft(1, 2, 4))
	first := e.createLease(instancesDraft(1, 2, 4))
	for _, l := range []lease.Lease{second, first} {
		e.startDue(l)
	}
	storetest.Exec(t, e.url,
		`update lease set created_at = created_at - interval '1 hour' where id = $1`, first.ID)
	lock := func(host int, more string) string {
		return fmt.Sprintf(`select from provider where uuid = '%s' for no key update %s`,
			e.hosts[host].NestedProvider, more)
	}
	for range 2 {
		err := storetest.NewRival(t, e.url).RunAgainst(func() error {
			got, err := e.advanceOnce(nil)
			if got.begun != 2 || got.finished != 2 {
				t.Errorf(
					"round with two leases that share hosts: got %d begun and %d finished steps, want 2 and 2",
					got.begun,
					got.finished,
				)
			}
			return err
		}, lock(0, ""), lock(1, "nowait"))
		if err != nil {
			t.Error(err)
		}
		storetest.Exec(t, e.url,
			`update event set at = now() - interval '1 hour', status = case event_type when 'before_end_lease' then 'DONE' else status end`)
	}
	e.expectStatus(first, lease.Terminated)
}
