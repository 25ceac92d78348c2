package cloud_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// newCareless returns a Cloud whose Nova and Neutron ignore the filters of lists. Nova does so with the
// filters that the policy of the caller does not allow, and Neutron with the filters of extensions that are
// not loaded.
func newCareless(t *testing.T) cloudTest {
	t.Helper()
	s := cloudTest{T: t, nova: &notifytest.Nova{}, neutron: &notifytest.Neutron{}}
	for _, host := range []string{"a", "b"} {
		s.nova.SetHypervisor(host, "up")
	}
	careless := func(h http.Handler) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = ""
			h.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	var err error
	s.Cloud, err = cloud.New(cloud.Config{
		Nova:    careless(s.nova) + "/v2.1",
		Neutron: careless(s.neutron),
		Timeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// performAll starts a reservation, runs its action before the end, and ends it. It returns the first error.
func (s cloudTest) performAll(c lease.CloudReservation) error {
	ids, err := s.Provision(s.Context(), c)
	c.NetworkID = ids.NetworkID
	for _, next := range []error{s.BeforeEnd(s.Context(), c), s.Deprovision(s.Context(), c)} {
		if err == nil {
			err = next
		}
	}
	return err
}

func TestCloud_ServersOfOthersSurviveANovaThatIgnoresFilters(t *testing.T) {
	t.Parallel()
	instances := hostsClaim("a")
	instances.ReservationDraft = lease.ReservationDraft{
		Type:     lease.VirtualInstance,
		VCPUs:    1,
		MemoryMB: 1,
		Affinity: lease.AffinityNone,
	}
	snapshot := hostsClaim("a")
	snapshot.BeforeEnd = "snapshot"
	for name, c := range map[string]lease.CloudReservation{"hosts": snapshot, "instances": instances} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCareless(t)
			foreign := s.nova.AddServer(notifytest.Server{Name: "foreign", Host: "b", Flavor: "m1.small"})
			if err := s.performAll(c); err == nil {
				t.Error("Nova listed the server of another host and flavor: got no error, want one")
			}
			after := s.nova.ComputeState()
			if !slices.Contains(after.Servers, foreign) || len(after.Images) > 0 {
				t.Errorf("after the reservation: got servers %+v and images %v, want only the unchanged server %+v",
					after.Servers, after.Images, foreign)
			}
		})
	}
}

func TestCloud_ObjectsOfOthersSurviveANeutronThatIgnoresFilters(t *testing.T) {
	t.Parallel()
	s := newCareless(t)
	foreign := networkClaim()
	foreign.ID, foreign.Segment.ID = uuid.New(), 101 // of the same project
	network := s.apply(foreign).NetworkID
	s.neutron.AddSubnet(network)
	port := s.neutron.AddPort(network, "", "")
	s.neutron.PutFloatingIP(notifytest.FloatingIP{
		Network: net.String(),
		IP:      "172.24.4.12",
		Project: "red",
		Port:    &port,
	})
	before := s.neutron.Networks()

	c := networkClaim()
	ended := c
	ended.Segment = lease.Segment{} // as after the end of the reservation
	for name, err := range map[string]error{
		"a reservation of floating IPs":         s.performAll(addressesClaim("172.24.4.10", "172.24.4.11")),
		"a reservation of a network":            s.performAll(c),
		"the end of a reservation of a network": s.Deprovision(t.Context(), ended),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.expectNetworks("of others", before)
	if subnets, left := s.neutron.Subnets(), s.neutron.DeletePort(uuid.NewString()); subnets != 1 || left != 1 {
		t.Errorf("objects on the network of others: got %d subnets and %d ports, want one of each", subnets, left)
	}
	if all := s.neutron.FloatingIPs(); len(all) != 1 || all[0].Port == nil || *all[0].Port != port {
		t.Errorf("floating IPs: got %+v, want only the one of others, with its port %s", all, port)
	}
}

// A user can give a floating IP the description of a reservation of another project.
func TestProvision_RefusesAFloatingIPThatAnotherProjectDescribesAsReserved(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.neutron.PutFloatingIP(notifytest.FloatingIP{
		Network:     net.String(),
		IP:          "172.24.4.10",
		Project:     "blue",
		Description: "reservation:" + id.String(),
	})
	c := addressesClaim("172.24.4.10")
	if _, err := s.Provision(t.Context(), c); err == nil {
		t.Error("Provision with the floating IP of another project: got no error, want ErrInUse")
	}
	s.remove(c)
	if all := s.neutron.FloatingIPs(); len(all) != 1 {
		t.Errorf("floating IPs after Deprovision: got %+v, want the one of project blue", all)
	}
}
