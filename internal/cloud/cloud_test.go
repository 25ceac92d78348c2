package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// cloudTest is a Cloud together with the stubs of Nova and Neutron to which the Cloud sends requests.
type cloudTest struct {
	*testing.T
	*cloud.Cloud
	nova    *notifytest.Nova
	neutron *notifytest.Neutron
	killer  *killer
}

// killer cancels the context of the function under test after a number of answers of Nova and Neutron. Before
// each answer is sent, killer also calls the function `each`, if a test has set it.
type killer struct {
	mu   sync.Mutex
	left int
	kill context.CancelFunc
	each func(*http.Request)
}

func (k *killer) behind(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.left--; k.left == 0 {
			k.kill()
		}
		if k.each != nil {
			k.each(r)
		}
	})
}

// atEach calls f at each answer of Nova and Neutron from now on. The calls of f do not overlap.
func (s cloudTest) atEach(f func(*http.Request)) {
	s.killer.mu.Lock()
	defer s.killer.mu.Unlock()
	s.killer.each = f
}

// killed runs f, and cancels the context of f when Nova and Neutron have answered `after` requests. The
// result `lived` is true if f ended before its context was cancelled.
func (s cloudTest) killed(after int, f func(context.Context) error) (lived bool) {
	s.Helper()
	ctx, kill := context.WithCancel(s.Context())
	defer kill()
	s.killer.mu.Lock()
	s.killer.left, s.killer.kill = after, kill
	s.killer.mu.Unlock()
	err := f(ctx)
	s.killer.mu.Lock()
	defer s.killer.mu.Unlock()
	if s.killer.left > 0 && err != nil {
		s.Error(err)
	}
	return s.killer.left > 0
}

func newCloudTest(t *testing.T) cloudTest {
	t.Helper()
	s := cloudTest{
		T:       t,
		nova:    &notifytest.Nova{},
		neutron: &notifytest.Neutron{},
		killer:  &killer{},
	}
	for _, host := range []string{"a", "b", "c"} {
		s.nova.SetHypervisor(host, "up")
	}
	serve := func(h http.Handler) string {
		server := httptest.NewServer(s.killer.behind(h))
		t.Cleanup(server.Close)
		return server.URL
	}
	var err error
	if s.Cloud, err = cloud.New(cloud.Config{Nova: serve(s.nova) + "/v2.1", Neutron: serve(s.neutron), Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s cloudTest) apply(c lease.CloudReservation) lease.CloudIDs {
	s.Helper()
	m, err := s.Provision(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	return m
}

func (s cloudTest) remove(c lease.CloudReservation) {
	s.Helper()
	if err := s.Deprovision(s.Context(), c); err != nil {
		s.Fatal(err)
	}
}

// pools returns the hosts of each aggregate. In the result of pools, the aggregate of the reservation c has
// the name "own".
func (s cloudTest) pools(c lease.CloudReservation) map[string][]string {
	all := map[string][]string{}
	for _, a := range s.nova.ComputeState().Aggregates {
		name := a.Name
		if name == c.ID.String() {
			name = "own"
		}
		all[name] = a.Hosts
	}
	return all
}

func (s cloudTest) want(c lease.CloudReservation, want map[string][]string) {
	s.Helper()
	if d := cmp.Diff(want, s.pools(c), cmpopts.EquateEmpty()); d != "" {
		s.Error(d)
	}
}

var id = uuid.MustParse("0d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e1111")

func hostsClaim(hosts ...string) lease.CloudReservation {
	c := lease.CloudReservation{
		Project: "red",
		Reservation: lease.Reservation{
			ID:               id,
			Revision:         3,
			ReservationDraft: lease.ReservationDraft{Type: lease.PhysicalHost},
		},
	}
	for _, h := range hosts {
		c.ComputeHosts = append(c.ComputeHosts, lease.ReservedHost{Service: h, Slots: 1})
	}
	return c
}

func TestProvision_MovesHostsFromTheFreepoolAndBack(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := hostsClaim("a", "b")
	first := hostsClaim("c")
	first.ID = uuid.New()
	s.apply(first)
	s.remove(first)                                // creates the freepool
	s.nova.AddServer(notifytest.Server{Host: "a"}) // the start of the reservation must delete this server

	for range 2 {
		if m := s.apply(c); m.Revision != 3 || m.AggregateID == nil {
			t.Errorf("apply a reservation of hosts: got %+v, want its revision and the aggregate's ID", m)
		}
	}
	s.want(c, map[string][]string{"own": {"a", "b"}, "freepool": {"c"}})
	for _, a := range s.nova.ComputeState().Aggregates {
		if a.Name == id.String() && (a.Zone != "blazar_"+id.String() || a.Metadata["blazar:owner"] != "red") {
			t.Errorf(
				"the reservation's aggregate: got %+v, want the availability zone and the owner of the reservation",
				a,
			)
		}
	}
	if left := s.nova.ComputeState().Servers; len(left) != 0 {
		t.Errorf("servers on the reservation's hosts: got %+v, want none", left)
	}

	s.apply(hostsClaim("c", "a")) // the changed reservation has no host b
	s.want(c, map[string][]string{"own": {"a", "c"}, "freepool": {"b"}})

	for range 2 {
		s.remove(hostsClaim("c", "a"))
	}
	s.want(c, map[string][]string{"freepool": {"a", "b", "c"}})
}

func TestDeprovision_FailsUntilTheServersAreDeleted(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := hostsClaim("a")
	s.apply(c)
	s.nova.AddServer(notifytest.Server{Host: "a", PollsUntilGone: 2})
	s.nova.AddServer(notifytest.Server{Host: "b"})
	if err := s.Deprovision(t.Context(), c); !errors.Is(err, cloud.ErrServersRemain) {
		t.Errorf("Deprovision while Nova deletes servers: want ErrServersRemain, got %v", err)
	}
	s.want(c, map[string][]string{"own": {"a"}})
	s.remove(c)
	s.want(c, map[string][]string{"freepool": {"a"}})
	if left := s.nova.ComputeState().Servers; len(left) != 1 || left[0].Host != "b" {
		t.Errorf("servers after the removal: got %+v, want the server on host b untouched", left)
	}
}

func TestProvision_RefusesAHostOfAnotherReservation(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	other := hostsClaim("a")
	other.ID = uuid.New()
	s.apply(other)
	s.nova.AddServer(notifytest.Server{Host: "a"})
	if _, err := s.Provision(t.Context(), hostsClaim("a")); !errors.Is(err, cloud.ErrInUse) {
		t.Errorf("apply a reservation with the host of another reservation: want ErrInUse, got %v", err)
	}
	s.remove(hostsClaim("a"))
	s.want(other, map[string][]string{"own": {"a"}})
	if len(s.nova.ComputeState().Servers) != 1 {
		t.Error("servers after the removal: got none, want the server of the other reservation")
	}
}

// A late attempt to provision a reservation that has ended can add a host to the reservation's aggregate,
// while the next reservation already has the host.
func TestDeprovision_OfALateReservationTouchesNoHostOfAnother(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	next := instancesClaim("a")
	next.ID = uuid.New()
	late := hostsClaim("a", "b")
	s.apply(late)
	s.apply(next)
	s.nova.AddServer(notifytest.Server{Host: "a"})
	s.nova.AddServer(notifytest.Server{Host: "b"})
	s.remove(late)
	s.want(next, map[string][]string{"own": {"a"}, "freepool": {"b"}})
	if left := s.nova.ComputeState().Servers; len(left) != 1 || left[0].Host != "a" {
		t.Errorf("servers after the removal: got %+v, want the one on the host of the other reservation", left)
	}
}

// In this test, each request of Provision and Deprovision fails twice: once before the stub of Nova or
// Neutron executes the request, and once after.
func TestCloud_EveryFailedRequestIsRepaired(t *testing.T) {
	t.Parallel()
	instances := instancesClaim("a", "b")
	addresses := addressesClaim("172.24.4.10", "172.24.4.11")
	for name, c := range map[string]lease.CloudReservation{
		"hosts":     hostsClaim("a", "b"),
		"instances": instances,
		"addresses": addresses,
		"network":   networkClaim(),
	} {
		for _, f := range []notifytest.Fault{{Status: 500}, {Status: 503, Applied: true}, {DropConnection: true, Applied: true}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newCloudTest(t)
				for _, what := range []string{"POST /os-aggregates", "POST /os-aggregates/1/action", "GET /os-aggregates", "POST /flavors", "POST /flavors/" + id.String(),
					"POST /os-server-groups", "DELETE /", "GET /servers", "POST /os-aggregates/1/action", "POST /os-aggregates/2/action"} {
					f.Request = what
					s.nova.InjectFaults(f)
				}
				for _, what := range []string{"GET /", "POST /", "PUT /", "DELETE /"} {
					f.Request = what
					s.neutron.InjectFaults(f)
				}
				s.retry(func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
				if hosts := s.pools(c)["own"]; len(hosts) != len(c.ComputeHosts) ||
					len(s.neutron.FloatingIPs()) != len(c.FloatingIPs) {
					t.Errorf(
						"apply a reservation with retries: got the hosts %v and the floating IPs %v, want all hosts and floating IPs of the reservation",
						hosts,
						s.neutron.FloatingIPs(),
					)
				}
				if d := cmp.Diff(networksFor(c), s.neutron.Networks(), cmpopts.IgnoreFields(notifytest.Network{}, "ID"), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("networks after Provision with retries (-want +got):\n%s", d)
				}
				s.retry(func(ctx context.Context) error { return s.Deprovision(ctx, c) })
				now := s.nova.ComputeState()
				now.Aggregates = slices.DeleteFunc(now.Aggregates,
					func(a notifytest.Aggregate) bool { return a.Name == "freepool" })
				inNova := len(now.Aggregates) + len(now.Flavors) + len(now.ServerGroups)
				inNeutron := len(s.neutron.FloatingIPs()) + len(s.neutron.Networks())
				if inNova+inNeutron > 0 {
					t.Errorf("objects after Deprovision: got %+v, floating IPs %+v; want none",
						now, s.neutron.FloatingIPs())
				}
			})
		}
	}
}

// retry calls f again and again until f succeeds.
func (s cloudTest) retry(f func(context.Context) error) {
	s.Helper()
	var err error
	for range 30 {
		if err = f(s.Context()); err == nil {
			return
		}
	}
	s.Error(err)
}

func instancesClaim(hosts ...string) lease.CloudReservation {
	c := hostsClaim(hosts...)
	c.ReservationDraft = lease.ReservationDraft{
		Type:     lease.VirtualInstance,
		VCPUs:    2,
		MemoryMB: 512,
		DiskGB:   5,
		Amount:   2,
		Affinity: lease.AffinityDifferentHosts,
	}
	return c
}

func TestProvision_InstancesGetTheirOwnFlavor(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := instancesClaim("a", "b")
	m := s.apply(c)
	again := s.apply(c)
	if d := cmp.Diff(m, again); d != "" || m.ServerGroupID == "" {
		t.Errorf(
			"apply a reservation twice: got %+v first, want a server group and the same IDs twice (-first +second):\n%s",
			m,
			d,
		)
	}
	now := s.nova.ComputeState()
	want := notifytest.ComputeState{
		Aggregates: []notifytest.Aggregate{
			{
				ID:    int(*m.AggregateID),
				Name:  id.String(),
				Hosts: []string{"a", "b"},
				Metadata: map[string]string{
					"reservation":      id.String(),
					"filter_tenant_id": "red",
					"blazar:owner":     "red",
					"affinity_id":      m.ServerGroupID,
				},
			},
		},
		Flavors: []notifytest.Flavor{
			{
				ID:     id.String(),
				Name:   "reservation:" + id.String(),
				VCPUs:  2,
				RAM:    512,
				Disk:   5,
				Access: []string{"red"},
				Specs: map[string]string{
					"aggregate_instance_extra_specs:reservation": id.String(),
					"affinity_id": m.ServerGroupID,
					"resources:CUSTOM_RESERVATION_0D3C1C1E_7D1B_4D6A_B6F4_2F2F0C5E1111": "1",
				},
			},
		},
		ServerGroups: []notifytest.ServerGroup{
			{ID: m.ServerGroupID, Name: "reservation:" + id.String(), Policies: []string{"anti-affinity"}},
		},
	}
	if d := cmp.Diff(want, now); d != "" {
		t.Error(d)
	}
	s.nova.AddServer(notifytest.Server{Host: "a", Flavor: id.String(), PollsUntilGone: 2})
	s.nova.AddServer(notifytest.Server{Host: "a", Flavor: "other"})
	s.apply(instancesClaim("b", "c"))
	s.want(c, map[string][]string{"own": {"b", "c"}})

	if err := s.Deprovision(t.Context(), c); !errors.Is(err, cloud.ErrServersRemain) {
		t.Errorf("Deprovision while Nova deletes servers: want ErrServersRemain, got %v", err)
	}
	if f := s.nova.ComputeState().Flavors[0]; len(f.Access) != 0 {
		t.Errorf("access to the flavor after the first removal: got %+v, want no project", f)
	}
	s.remove(c)
	s.remove(c)
	if now := s.nova.ComputeState(); len(now.Aggregates)+len(now.Flavors)+len(now.ServerGroups) != 0 ||
		len(now.Servers) != 1 {
		t.Errorf("objects after the removal: got %+v, want only the server with another flavor", now)
	}
}

// A user can give a server group any name. The servers of a reservation would follow the policy of this
// group, and the end of the lease would delete it.
func TestProvision_ServerGroupOfAnotherProjectIsNotOfTheReservation(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	foreign := notifytest.ServerGroup{
		ID:       "foreign",
		Name:     "reservation:" + id.String(),
		Policies: []string{"affinity"},
		Project:  "blue",
	}
	s.nova.AddServerGroup(foreign)
	c := instancesClaim("a", "b")
	if m := s.apply(c); m.ServerGroupID == foreign.ID || m.ServerGroupID == "" {
		t.Errorf("server group of the reservation: got %q, want one of its own", m.ServerGroupID)
	}
	s.remove(c)
	if d := cmp.Diff([]notifytest.ServerGroup{foreign}, s.nova.ComputeState().ServerGroups); d != "" {
		t.Errorf("server groups after the removal (-want +got):\n%s", d)
	}
}

func TestProvision_FlavorInstancesKeepTheExtraSpecs(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.AddFlavor(notifytest.Flavor{
		ID:        "7",
		Name:      "m1",
		VCPUs:     1,
		RAM:       64,
		Disk:      3,
		Ephemeral: 2,
		Specs:     map[string]string{"hw:cpu_policy": "dedicated"},
	})
	f, err := s.Flavor(t.Context(), "red", "7")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(lease.Flavor{
		ID:         "7",
		Name:       "m1",
		VCPUs:      1,
		MemoryMB:   64,
		DiskGB:     3,
		Ephemeral:  2,
		ExtraSpecs: map[string]string{"hw:cpu_policy": "dedicated"},
	}, f); d != "" {
		t.Error(d)
	}
	var fault *lease.Fault
	if _, err := s.Flavor(t.Context(), "red", "8"); !errors.As(err, &fault) ||
		fault.Kind != lease.UnknownFlavor {
		t.Errorf("read an unknown flavor: want a fault of the kind UnknownFlavor, got %v", err)
	}
	c := hostsClaim("a")
	c.ReservationDraft = lease.ReservationDraft{Type: lease.FlavorInstance, Amount: 1, Flavor: &f}
	if m := s.apply(c); m.ServerGroupID != "" {
		t.Errorf("apply a reservation without affinity: got %+v, want no server group", m)
	}
	made := s.nova.ComputeState().Flavors[1]
	if made.Disk != 3 || made.Ephemeral != 2 || made.Specs["hw:cpu_policy"] != "dedicated" || made.Public {
		t.Errorf(
			"the reservation's flavor: got %+v, want a private flavor with the values of the source flavor",
			made,
		)
	}
}

// berth's own user reads every flavor, so Nova does not hide the flavors of other projects from it.
func TestFlavor_PrivateOneOfAnotherProjectIsUnknown(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.AddFlavor(notifytest.Flavor{
		ID:     "7",
		Name:   "gpu",
		VCPUs:  1,
		RAM:    64,
		Access: []string{"green", "blue"},
		Specs:  map[string]string{"pci_passthrough:alias": "a100:1"},
	})
	_, missing := s.Flavor(t.Context(), "red", "8")
	for project, allowed := range map[string]bool{"blue": true, "red": false, "": true} {
		f, err := s.Flavor(t.Context(), project, "7")
		var fault *lease.Fault
		switch {
		case allowed && (err != nil || f.Name != "gpu"):
			t.Errorf("read a private flavor for the project %q, which may use it: got %+v, error %v",
				project, f, err)
		case !allowed && (!errors.As(err, &fault) || fault.Kind != lease.UnknownFlavor || f.Name != ""):
			t.Errorf(
				"read a private flavor of other projects: got %+v, error %v; want only a fault of the kind UnknownFlavor",
				f,
				err,
			)
		case !allowed && strings.ReplaceAll(fault.Message, "7", "8") != missing.Error():
			t.Errorf(
				"read a private flavor of other projects: got the message %q, want the one for a missing flavor, %q",
				fault.Message,
				missing,
			)
		}
	}
}

func TestBeforeEnd_CreatesSnapshots(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.AddServer(notifytest.Server{Host: "a", Name: "web"})
	c := hostsClaim("a")
	for _, action := range []string{"", "default", "snapshot"} {
		c.BeforeEnd = action
		if err := s.BeforeEnd(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff([]string{"reserved_web"}, s.nova.ComputeState().Images); d != "" {
		t.Error(d)
	}
}

var net, subnet = uuid.New(), uuid.New()

func addressesClaim(ips ...string) lease.CloudReservation {
	c := lease.CloudReservation{
		Project: "red",
		Reservation: lease.Reservation{
			ID:               id,
			ReservationDraft: lease.ReservationDraft{Type: lease.FloatingIP, Network: net},
		},
	}
	for _, ip := range ips {
		c.FloatingIPs = append(c.FloatingIPs,
			lease.ReservableFloatingIP{Network: net, Subnet: subnet, IP: netip.MustParseAddr(ip)})
	}
	return c
}

func TestProvision_CreatesAndDeletesFloatingIPs(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := addressesClaim("172.24.4.10", "172.24.4.11")
	s.apply(c)
	s.apply(c)
	s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: net.String(), IP: "172.24.4.12", Project: "blue"})
	of := func(ip string) notifytest.FloatingIP {
		return notifytest.FloatingIP{
			Network:     net.String(),
			Subnet:      subnet.String(),
			IP:          ip,
			Project:     "red",
			Description: "reservation:" + id.String(),
			Tags:        []string{"blazar", "reservation:" + id.String()},
		}
	}
	want := []notifytest.FloatingIP{
		of("172.24.4.10"),
		of("172.24.4.11"),
		{Network: net.String(), IP: "172.24.4.12", Project: "blue"},
	}
	if d := cmp.Diff(want, s.neutron.FloatingIPs(), cmpopts.IgnoreFields(notifytest.FloatingIP{}, "ID")); d != "" {
		t.Error(d)
	}
	_, err := s.Provision(t.Context(), addressesClaim("172.24.4.10", "172.24.4.12"))
	if !errors.Is(err, cloud.ErrInUse) {
		t.Errorf("apply a reservation with the floating IP of another owner: want ErrInUse, got %v", err)
	}
	port := "p"
	s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: net.String(), IP: "172.24.4.11", Port: &port})
	s.remove(c)
	s.remove(c)
	if left := s.neutron.FloatingIPs(); len(left) != 1 || left[0].Project != "blue" {
		t.Errorf("floating IPs after the removal: got %+v, want only the one of project blue", left)
	}
}

func TestCloud_RefreshesARejectedToken(t *testing.T) {
	t.Parallel()
	stub := &notifytest.Nova{Token: "new"}
	stub.SetHypervisor("a", "up")
	server := httptest.NewServer(stub)
	defer server.Close()
	given := []string{"old", "new"}
	c, err := cloud.New(cloud.Config{
		Nova:    server.URL,
		Timeout: time.Hour,
		RefreshToken: func(context.Context, string) (string, error) {
			token := given[0]
			given = given[min(1, len(given)-1):]
			return token, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := cloudTest{T: t, Cloud: c, nova: stub}
	s.retry(func(ctx context.Context) error { _, err := c.Provision(ctx, hostsClaim("a")); return err })
	s.want(hostsClaim("a"), map[string][]string{"own": {"a"}})
}

func TestCloud_WithoutEndpointsDoesNothing(t *testing.T) {
	t.Parallel()
	c, err := cloud.New(cloud.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := c.Provision(t.Context(), hostsClaim("a")); err != nil || m.Revision != 3 ||
		c.Supports(lease.PhysicalHost) {
		t.Errorf(
			"Provision without a Nova URL: got %+v, error %v; want only the revision, and reservations of hosts unsupported",
			m,
			err,
		)
	}
	for _, address := range []string{"nova", "ftp://nova", "http://u:p@nova", "http://nova?x"} {
		if _, err := cloud.New(cloud.Config{Nova: address}); err == nil {
			t.Errorf("New with the Nova URL %s: got no error, want one", address)
		}
	}
}
