package activities_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/cloud"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// A host that healing has replaced can be down only for a while, with servers of the lease on it. They must
// not stay after the end of the lease, on a host that other leases get.
func TestLease_ServersOnAReplacedHostAreDeletedAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deleted bool
		fault   int // status that Nova answers to the first deletion of the server; 0: none
	}{
		"at the end":                        {},
		"at the deletion":                   {deleted: true},
		"by the sweep, after a failed call": {fault: http.StatusServiceUnavailable},
		"by the sweep, after a failed call at the deletion": {
			fault:   http.StatusConflict,
			deleted: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHealing(t)
			s, stub, acts, url := f.Store, f.nova, f.acts, f.url
			l := createOneHourLease(t, s, "l", "p", time.Now().Add(time.Minute),
				lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1, Max: 1})
			f.advance(lease.StartLease)
			server := notifytest.Server{Host: "cmp-1", Project: "p", Created: time.Now().Add(-time.Minute)}
			server = stub.AddServer(server)
			foreign := stub.AddServer(notifytest.Server{Host: "cmp-1", Project: "q", Created: server.Created})
			stub.SetHypervisor("cmp-1", "down")
			f.heal()
			stub.SetHypervisor("cmp-1", "up")
			f.heal()
			if err := acts.ProvisionReservation(t.Context(), l.Reservations[0].ID); err != nil {
				t.Fatal(err)
			}
			if hosts := hostsOf(stub, l.Reservations[0].ID.String()); !slices.Equal(hosts, []string{"cmp-2"}) {
				t.Fatalf("hosts of the reservation after the replacement: got %v, want cmp-2", hosts)
			}

			if tt.fault != 0 {
				stub.InjectFaults(notifytest.Fault{Request: "POST /servers/" + server.ID, Status: tt.fault})
			}
			if tt.deleted {
				deleteStarted(t, acts, l)
			} else {
				storetest.Exec(t, url, `update event set status = 'DONE' where event_type = 'before_end_lease'`)
				f.advance(lease.EndLease)
				if l, err := s.Lease.Lease(t.Context(), l.ID); err != nil || l.Status != lease.Terminated {
					t.Errorf("lease after its end: got %s, failed calls %+v, error %v; want TERMINATED",
						l.Status, l.FailedCalls(), err)
				}
			}
			if tt.fault != 0 {
				storetest.Exec(t, url, `update reservation_leftover set due_at = now()`)
				f.heal()
			}
			if left := stub.ComputeState().Servers; len(left) != 1 || left[0].ID != foreign.ID {
				t.Errorf("servers after the end: got %+v, want only the one of another project", left)
			}
			if hosts := hostsOf(stub, "freepool"); !slices.Equal(hosts, []string{"cmp-1", "cmp-2"}) {
				t.Errorf("freepool after the end: got %v, want both hosts", hosts)
			}
		})
	}
}

// Nova shows every hypervisor as down while its message queue or its database stalls; the servers run on.
func TestLease_HostsThatAreDownForAWhileKeepTheirServers(t *testing.T) {
	t.Parallel()
	f := newHealing(t)
	s, stub, acts := f.Store, f.nova, f.acts
	hosts := []string{"cmp-1", "cmp-2"}
	setHosts := func(state string) {
		for _, host := range hosts {
			stub.SetHypervisor(host, state)
		}
	}
	leases, want := map[string]lease.Lease{}, []string{}
	for i, host := range hosts { // the lease of the second host starts first, so healing begins with it
		leases[host] = createOneHourLease(t, s, host, host, time.Now().Add(time.Duration(2-i)*time.Minute),
			lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1, Max: 1})
	}
	f.advance(lease.StartLease)
	for _, host := range hosts {
		stub.AddServer(notifytest.Server{Host: host, Project: host, Created: time.Now().Add(-time.Minute)})
		want = append(want, host)
	}
	provision := func() {
		t.Helper()
		for _, l := range leases {
			if err := acts.ProvisionReservation(t.Context(), l.Reservations[0].ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	setHosts("down")
	f.heal()
	provision()
	if all := hostsOf(stub, "freepool"); !slices.Equal(all, hosts) {
		t.Fatalf("freepool after both hosts have failed: got %v, want both", all)
	}
	setHosts("up")
	f.heal()
	provision()

	var got []string
	for _, server := range stub.ComputeState().Servers {
		got = append(got, server.Host)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("hosts of the servers: got %v, want %v", got, want)
	}
	for host, l := range leases {
		if all := hostsOf(stub, l.Reservations[0].ID.String()); !slices.Equal(all, []string{host}) {
			t.Errorf("hosts of the lease of %s: got %v, want this host", host, all)
		}
	}
}

// A host that healing has replaced is for no other lease as long as the lease can have servers on it.
func TestLease_FormerHostIsReleasedWhenItsServersAreGone(t *testing.T) {
	t.Parallel()
	f := newHealing(t)
	l := createOneHourLease(t, f.Store, "l", "p", time.Now().Add(time.Minute),
		lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1, Max: 1})
	f.advance(lease.StartLease)
	f.nova.AddServer(notifytest.Server{Host: "cmp-1", Project: "p", Created: time.Now().Add(-time.Hour)})
	// heal heals with the state of the first host, and returns the number of former hosts.
	heal := func(state string) int {
		t.Helper()
		f.nova.SetHypervisor("cmp-1", state)
		f.heal()
		c, err := f.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(c.FormerHosts)
	}
	heal("down")
	storetest.Exec(t, f.url, `update reservation_former_host set left_at = left_at - interval '30 minutes'`)
	if n := heal("up"); n != 1 {
		t.Errorf("former hosts while Nova has a server on the host: got %d, want 1", n)
	}
	f.nova.RemoveServers("cmp-1")
	if n := heal("up"); n != 0 {
		t.Errorf("former hosts after the deletion of the server: got %d, want none", n)
	}
}

// healing is a store with the activities that heal leases, and with a Nova that has the hosts cmp-1 and
// cmp-2.
type healing struct {
	*store.Store
	t    *testing.T
	url  string
	nova *notifytest.Nova
	acts *activities.Activities
	env  *testsuite.TestActivityEnvironment
}

func newHealing(t *testing.T) *healing {
	t.Helper()
	url := storetest.URL(t)
	f := &healing{
		Store: storetest.Open(t, url),
		t:     t,
		url:   url,
		nova:  &notifytest.Nova{},
		env:   (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment(),
	}
	nova, err := cloud.New(cloud.Config{Nova: startServer(t, f.nova), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	nova.Reread(f.Lease.RereadCloudReservation)
	f.acts = newActivities(activities.Options{
		Store:         f.Store,
		Cloud:         nova,
		Hypervisors:   nova,
		MonitorHosts:  true,
		HealingWindow: time.Hour,
	})
	activities.Register(f.env, f.acts.Functions())
	for _, host := range []string{"cmp-1", "cmp-2"} {
		if _, err := f.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs[host], Name: host}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: host}, nil); err != nil {
			t.Fatal(err)
		}
		f.nova.SetHypervisor(host, "up")
	}
	return f
}

func (f *healing) heal() {
	f.t.Helper()
	if _, err := f.env.ExecuteActivity(f.acts.HealReservations); err != nil {
		f.t.Fatal(err)
	}
}

// advance performs the events of a type of all leases now.
func (f *healing) advance(event lease.EventType) {
	f.t.Helper()
	storetest.Exec(f.t, f.url, `update event set at = now() where event_type = $1`, string(event))
	if _, err := f.acts.AdvanceLeases(f.t.Context(), time.Now()); err != nil {
		f.t.Fatal(err)
	}
}

// hostsOf returns the hosts of an aggregate in the stub of Nova.
func hostsOf(stub *notifytest.Nova, aggregate string) (hosts []string) {
	for _, a := range stub.ComputeState().Aggregates {
		if a.Name == aggregate {
			hosts = a.Hosts
		}
	}
	return hosts
}
