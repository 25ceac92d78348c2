package activities_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/cloud"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
	"berth/internal/store/storetest"
)

func TestHealReservations_ReplacesHostThatNovaReportsDown(t *testing.T) {
	t.Parallel()
	stub := &notifytest.Nova{}
	nova, err := cloud.New(cloud.Config{Nova: startServer(t, stub), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.New(t)
	acts := newActivities(activities.Options{
		Store:         s,
		Hypervisors:   nova,
		MonitorHosts:  true,
		HealingWindow: time.Hour,
	})
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(env, acts.Functions())
	for _, name := range []string{"cmp-1", "cmp-2", "cmp-3"} {
		if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs[name], Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: name}, nil); err != nil {
			t.Fatal(err)
		}
		stub.SetHypervisor(name, "up")
	}
	start := time.Now().Add(time.Minute)
	l := createOneHourLease(t, s, "l", "p", start, lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1, Max: 1})
	healedHosts := func() []int64 {
		t.Helper()
		if _, err := env.ExecuteActivity(acts.HealReservations); err != nil {
			t.Fatal(err)
		}
		l, err := s.Lease.Lease(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		return l.Reservations[0].Hosts
	}

	for _, step := range []struct {
		host, state string
		fault       int // status that Nova answers; 0: no fault
		want        []int64
	}{
		{"cmp-1", "up", 0, []int64{1}},
		{"cmp-1", "down", 503, []int64{1}}, // Nova does not answer, so the host is kept
		{"cmp-1", "down", 0, []int64{2}},
		{"cmp-2", "disabled", 0, []int64{3}},
		{"cmp-3", "down", 0, []int64{}},
		{"cmp-1", "up", 0, []int64{1}},
	} {
		stub.SetHypervisor(step.host, step.state)
		if step.fault != 0 {
			stub.InjectFaults(notifytest.Fault{Request: "GET /os-hypervisors/detail", Status: step.fault})
		}
		if d := cmp.Diff(step.want, healedHosts()); d != "" {
			t.Errorf("hosts of the reservation after host %s became %s (-want +got):\n%s",
				step.host, step.state, d)
		}
	}
}

// Without MonitorHosts, a host that Nova reports as down stays in its leases, but berth learns the host's
// compute service.
func TestHealReservations_RefreshesHosts(t *testing.T) {
	t.Parallel()
	stub := &notifytest.Nova{}
	nova, err := cloud.New(cloud.Config{Nova: startServer(t, stub), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.New(t)
	acts := newActivities(activities.Options{Store: s, Hypervisors: nova, HealingWindow: time.Hour})
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(env, acts.Functions())
	if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs["cmp-1"], Name: "cmp-1.example.org"}); err != nil {
		t.Fatal(err)
	}
	h, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1.example.org"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stub.SetHypervisor("cmp-1.example.org", "down")
	if _, err := env.ExecuteActivity(acts.HealReservations); err != nil {
		t.Fatal(err)
	}
	if h, err = s.Lease.Host(t.Context(), h.ID); err != nil || h.ServiceName != "cmp-1" ||
		h.AvailabilityZone != "nova" ||
		!h.Reservable {
		t.Errorf(
			"host after the first healing: got %+v, error %v; want Nova's compute service cmp-1 and the zone nova, and the host reservable",
			h,
			err,
		)
	}
}

// hypervisorList is what Nova says about its hypervisors.
type hypervisorList []lease.Hypervisor

func (l hypervisorList) Hypervisors(context.Context) ([]lease.Hypervisor, error) { return l, nil }

// The compute service of a host chooses what Nova says about its hypervisors, also their hostnames.
func TestHealReservations_OneHostileHypervisorAffectsNoOtherHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hostile   lease.Hypervisor
		refreshed bool // what Nova says about the other host counts
	}{
		"NUL in the hostname":          {lease.Hypervisor{Hostname: "e\x00"}, true},
		"NUL in the CPU information":   {lease.Hypervisor{Hostname: "e", CPUInfo: "\x00"}, true},
		"NUL in the zone":              {lease.Hypervisor{Hostname: "e", AvailabilityZone: "\x00"}, true},
		"huge version":                 {lease.Hypervisor{Hostname: "e", Version: 1 << 40}, true},
		"very negative version":        {lease.Hypervisor{Hostname: "e", Version: -1 << 40}, true},
		"long hostname":                {lease.Hypervisor{Hostname: strings.Repeat("e", 1<<20)}, true},
		"hostname of the other host":   {lease.Hypervisor{Hostname: "cmp-1", Service: "e", Type: "E"}, false},
		"service of the other host":    {lease.Hypervisor{Hostname: "e", Service: "cmp-1"}, true},
		"hostname in different letter": {lease.Hypervisor{Hostname: "CMP-1", Service: "e"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			honest := lease.Hypervisor{Hostname: "cmp-1", Service: "cmp-1", Type: "KVM", Up: true}
			acts := newActivities(activities.Options{
				Store:         s,
				Hypervisors:   hypervisorList{c.hostile, honest, c.hostile},
				MonitorHosts:  true,
				HealingWindow: time.Hour,
			})
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			activities.Register(env, acts.Functions())
			if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs["cmp-1"], Name: "cmp-1"}); err != nil {
				t.Fatal(err)
			}
			h, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := env.ExecuteActivity(acts.HealReservations); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "KVM", false: "QEMU"}[c.refreshed]
			if h, err = s.Lease.Host(t.Context(), h.ID); err != nil || h.ServiceName != "cmp-1" ||
				!h.Reservable || h.HypervisorType != want {
				t.Errorf("the other host: got %+v, %v; want reservable, the service cmp-1 and the type %s", h, err, want)
			}
		})
	}
}

// A reservation of a host deletes all servers of the host's compute service, which the service itself names
// to Nova. Nova ignores the case of the name.
func TestHealReservations_NoHostTakesTheComputeServiceOfAnotherHypervisor(t *testing.T) {
	t.Parallel()
	node, other := uuid.NewString(), uuid.NewString()
	victim := lease.Hypervisor{Hostname: "victim.example.org", Service: "victim"}
	onNode := func(service string) lease.Hypervisor {
		return lease.Hypervisor{Hostname: other, Service: service}
	}
	for name, c := range map[string]struct {
		host, registered string // the hostname, and the compute service at the registration
		named            string // the compute service that Nova names now
		other            lease.Hypervisor
		want             string
	}{
		"of another hypervisor":      {"cmp-9", "cmp-9", "victim", victim, "cmp-9"},
		"of another one, FQDN":       {"cmp-9.example.org", "cmp-9", "victim", victim, "cmp-9"},
		"in other letters":           {"cmp-9", "cmp-9", "VICTIM", victim, "cmp-9"},
		"hostname of another one":    {"cmp-9", "cmp-9", victim.Hostname, victim, "cmp-9"},
		"of a node":                  {"cmp-9", "cmp-9", "ironic-1", onNode("ironic-1"), "cmp-9"},
		"of a compute host":          {node, "ironic-1", "victim", victim, "ironic-1"},
		"first learning":             {"cmp-9.example.org", "", "cmp-9", victim, "cmp-9"},
		"new":                        {"cmp-9.example.org", "cmp-9", "cmp-9b", victim, "cmp-9b"},
		"first learning of a node":   {node, "", "ironic-1", onNode("ironic-1"), "ironic-1"},
		"node that Ironic has moved": {node, "ironic-1", "ironic-2", onNode("ironic-2"), "ironic-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			list := hypervisorList{{Hostname: c.host, Service: c.named}, c.other}
			acts := newActivities(activities.Options{Store: s, Hypervisors: list, HealingWindow: time.Hour})
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			activities.Register(env, acts.Functions())
			provider := inventory.ProviderDraft{UUID: uuid.NewString(), Name: c.host}
			if _, err := s.Inventory.CreateProvider(t.Context(), provider); err != nil {
				t.Fatal(err)
			}
			registered := lease.Hypervisor{Hostname: c.host, Service: c.registered}
			h, err := s.Lease.RegisterHost(t.Context(), registered, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := env.ExecuteActivity(acts.HealReservations); err != nil {
				t.Fatal(err)
			}
			if h, err = s.Lease.Host(t.Context(), h.ID); err != nil || h.ServiceName != c.want {
				t.Errorf("compute service of the host: got %q, %v; want %q", h.ServiceName, err, c.want)
			}
		})
	}
}

var hostUUIDs = map[string]string{
	"cmp-1": "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b01",
	"cmp-2": "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b02",
	"cmp-3": "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b03",
}
