package leasestore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

func TestHost_RegisteredWithWhatNovaSays(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	for _, name := range []string{"cmp-1.example.org", "node-a", "node-b"} {
		storetest.AddHost(t, e.Store, name, map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)})
	}
	h, err := e.Lease.RegisterHost(t.Context(), lease.Hypervisor{
		Hostname:         "cmp-1.example.org",
		Service:          "cmp-1",
		Type:             "KVM",
		Version:          8002,
		CPUInfo:          "x86",
		AvailabilityZone: "east",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := lease.Host{
		Hostname:          "cmp-1.example.org",
		ServiceName:       "cmp-1",
		HypervisorType:    "KVM",
		HypervisorVersion: 8002,
		CPUInfo:           "x86",
		AvailabilityZone:  "east",
		VCPUs:             8,
		Reservable:        true,
		Capabilities:      map[string]string{},
	}
	if d := cmp.Diff(want, h, cmpopts.IgnoreFields(lease.Host{}, "ID", "Provider", "NestedProvider", "CreatedAt")); d != "" {
		t.Error(d)
	}
	l := e.createActiveForOneHour(hostsDraft(0, 1, 1, 1))
	r, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]lease.ReservedHost{{Service: "cmp-1", Slots: 1}}, r.ComputeHosts); d != "" {
		t.Errorf("hosts of an active reservation for Nova's aggregates (-want +got):\n%s", d)
	}

	if _, err := e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "node-a", Service: "ironic"}, nil); err != nil {
		t.Fatal(err)
	}
	_, err = e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "node-b", Service: "ironic"}, nil)
	if faultKind(err) != lease.HostInUse {
		t.Errorf("register a second host of a compute service: got %v, want a fault of kind HostInUse", err)
	}
}

func TestRefreshHosts_FollowsNova(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.Lease = leasestore.New(
		e.DB,
		leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}, PoolHosts: true},
	)
	for _, name := range []string{"cmp-1.example.org", "node-a", "node-b", "absent"} {
		e.register(name, nil)
	}
	seen := []lease.Hypervisor{
		{
			Hostname:         "cmp-1.example.org",
			Service:          "cmp-1",
			Type:             "KVM",
			Version:          8002,
			CPUInfo:          "x86",
			AvailabilityZone: "east",
		},
		{Hostname: "node-a", Service: "ironic"}, // registered before berth knew compute services
		{Hostname: "node-b", Service: "ironic", Type: "ironic"},
		{Hostname: "not registered", Service: "absent"},
	}
	for range 2 {
		if err := e.Lease.RefreshHosts(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
	}
	want := []lease.Host{
		{
			Hostname:          "cmp-1.example.org",
			ServiceName:       "cmp-1",
			HypervisorType:    "KVM",
			HypervisorVersion: 8002,
			CPUInfo:           "x86",
			AvailabilityZone:  "east",
		},
		{Hostname: "node-a", ServiceName: "ironic", HypervisorType: "QEMU"},
		{Hostname: "node-b", ServiceName: "node-b", HypervisorType: "ironic"},
		{Hostname: "absent", ServiceName: "absent", HypervisorType: "QEMU"},
	}
	e.expectHosts(want)
	for service, want := range map[string][2]int64{
		"cmp-1.example.org": {0, 2},
		"cmp-1":             {1, 1},
		"node-a":            {0, 2},
		"ironic":            {1, 1},
		"node-b":            {1, 1},
	} {
		reservable, version := e.pendingPoolUpdate(service)
		if reservable != (want[0] == 1) || version != want[1] {
			t.Errorf(
				"pending pool update of the compute service %s: got reservable %t and version %d, want %v",
				service, reservable, version, want,
			)
		}
	}

	seen[0] = lease.Hypervisor{
		Hostname:         "cmp-1.example.org",
		Service:          "cmp-1",
		Type:             "KVM",
		Version:          9000,
		AvailabilityZone: "west",
	}
	if err := e.Lease.RefreshHosts(t.Context(), seen[:1]); err != nil {
		t.Fatal(err)
	}
	// Nova no longer reports the CPU information
	want[0].HypervisorVersion, want[0].AvailabilityZone = 9000, "west"
	e.expectHosts(want)
}

// expectHosts compares those fields of the hosts whose values come from Nova.
func (t *fixture) expectHosts(want []lease.Host) {
	t.Helper()
	all, err := t.Lease.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := cmp.Diff(want, all, cmpopts.IgnoreFields(
		lease.Host{}, "ID", "Provider", "NestedProvider",
		"VCPUs", "MemoryMB", "LocalGB", "Reservable", "Capabilities", "CreatedAt", "UpdatedAt",
	))
	if d != "" {
		t.Errorf("what the hosts have from Nova (-want +got):\n%s", d)
	}
}
