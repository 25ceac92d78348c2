package leasestore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestHost_RegisterAndDelete(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	_, err := e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "nobody"}, nil)
	if faultKind(err) != lease.UnknownHost {
		t.Errorf("register an unknown hypervisor: got %v, want a fault of kind UnknownHost", err)
	}
	h := e.register("cmp-1", map[string]string{"gpu": "True"})
	if h.VCPUs != 8 || h.MemoryMB != 1024 || h.LocalGB != 20 || h.Capabilities["gpu"] != "True" {
		t.Errorf(
			"register the host cmp-1: got %+v, want 8 VCPUs, 1024 MB of memory, 20 GB of disk and the capability gpu=True",
			h,
		)
	}
	_, err = e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1"}, nil)
	if faultKind(err) != lease.HostInUse {
		t.Errorf("register a host twice: got %v, want a fault of kind HostInUse", err)
	}
	_, err = e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: lease.NestedProviderName("cmp-1")}, nil)
	if faultKind(err) != lease.UnknownHost {
		t.Errorf("register a nested provider as a host: got %v, want a fault of kind UnknownHost", err)
	}
	p, err := e.Inventory.Provider(t.Context(), h.NestedProvider.String())
	if err != nil || p.Name != "blazar_cmp-1" || p.Root != h.Provider.String() {
		t.Errorf(
			"nested provider of the host cmp-1: got %+v, error %v; want the name blazar_cmp-1 and the host's provider as root",
			p,
			err,
		)
	}
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	if err := e.Lease.DeleteHost(t.Context(), h.ID); faultKind(err) != lease.HostInUse {
		t.Errorf("delete a reserved host: got %v, want a fault of kind HostInUse", err)
	}
	e.deleteLease(l.ID)
	if err := e.Lease.DeleteHost(t.Context(), h.ID); err != nil {
		t.Error(err)
	}
	if err := e.Lease.DeleteHost(t.Context(), h.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("delete a host twice: got error %v, want ErrNotFound", err)
	}
	_, err = e.Inventory.Provider(t.Context(), h.NestedProvider.String())
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("read the nested provider of a deleted host: got error %v, want ErrNotFound", err)
	}
	if _, err := e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1"}, nil); err != nil {
		t.Errorf("register a deleted host again: got error %v, want none", err)
	}
}

func TestHost_NotRegisteredWhileServersRun(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	p := storetest.AddHost(t, e.Store, "cmp-1",
		map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)})
	storetest.Allocate(t, e.Store, storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
	_, err := e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1"}, nil)
	if faultKind(err) != lease.HostInUse {
		t.Errorf("register a host on which a server runs: got %v, want a fault of kind HostInUse", err)
	}
}

func TestHost_AllocationsAndProperties(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.register("gpu-1", map[string]string{"gpu": "True"})
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	over := e.createLease(hostsDraft(3, 4, 1, 1))
	storetest.Exec(
		t,
		e.url,
		`update lease set start_at = now() - interval '2 hours', end_at = now() - interval '1 hour' where id = $1`,
		over.ID,
	)
	r := lease.AllocatedReservation{
		ID:      l.Reservations[0].ID,
		Lease:   l.ID,
		StartAt: l.StartAt,
		EndAt:   l.EndAt,
	}
	for _, c := range []struct {
		f    lease.AllocationFilter
		want []lease.HostAllocation
	}{
		{lease.AllocationFilter{}, []lease.HostAllocation{{Host: e.hosts[0].ID, Reservations: []lease.AllocatedReservation{r}}, {Host: e.hosts[1].ID}}},
		{lease.AllocationFilter{Lease: l.ID.String()}, []lease.HostAllocation{{Host: e.hosts[0].ID, Reservations: []lease.AllocatedReservation{r}}, {Host: e.hosts[1].ID}}},
		{lease.AllocationFilter{Reservation: uuid.NewString(), Host: e.hosts[0].ID}, []lease.HostAllocation{{Host: e.hosts[0].ID}}},
	} {
		got, err := e.Lease.HostAllocations(t.Context(), c.f)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("host allocations with the filter %+v (-want +got):\n%s\nerror: %v", c.f, d, err)
		}
	}
	if p, err := e.Lease.SetHostPropertyPrivate(t.Context(), "gpu", true); err != nil || !p.Private {
		t.Errorf("make a host property private: got %+v, error %v; want it private", p, err)
	}
	public, err := e.Lease.HostProperties(t.Context(), false)
	if err != nil || len(public) != 0 {
		t.Errorf("list public host properties: got %+v, error %v; want none", public, err)
	}
	if all, err := e.Lease.HostProperties(t.Context(), true); err != nil || len(all) != 1 ||
		all[0].Values[0] != "True" {
		t.Errorf("list all host properties: got %+v, error %v; want one with the value True", all, err)
	}
	if _, err := e.Lease.SetHostPropertyPrivate(t.Context(), "none", true); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("make an unknown host property private: got error %v, want ErrNotFound", err)
	}
}

func TestHost_NotDeletedWhileServersRun(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	server := uuid.NewString()
	storetest.Allocate(t, e.Store,
		storetest.VCPUs(server, e.hosts[0].Provider.String(), 1, inventory.ExpectAbsent()))
	if err := e.Lease.DeleteHost(t.Context(), e.hosts[0].ID); faultKind(err) != lease.HostInUse {
		t.Errorf("delete a host on which a server runs: got %v, want a fault of kind HostInUse", err)
	}
	storetest.Allocate(t, e.Store, storetest.NoAllocations(server, inventory.ExpectGeneration(1)))
	if err := e.Lease.DeleteHost(t.Context(), e.hosts[0].ID); err != nil {
		t.Error(err)
	}
}
