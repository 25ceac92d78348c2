package cloud_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// A user can create a port with the owner of a server's port. The network, and with it the segment, would
// stay until an operator deletes the port.
func TestDeprovision_DeletesPortsThatNameNoServer(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"compute:nova", "compute:", "baremetal:none"} {
		for _, device := range []string{"", "server", "../..", "a?b=c", uuid.NewString(), "urn:uuid:" + uuid.NewString()} {
			t.Run(owner+" "+device, func(t *testing.T) {
				t.Parallel()
				s := newCloudTest(t)
				s.nova.AddServer(notifytest.Server{Host: "z"})
				c := networkClaim()
				s.neutron.AddPort(s.apply(c).NetworkID, owner, device)
				s.remove(c)
				s.expectNetworks("after Deprovision", nil)
			})
		}
	}
}

// The owner of a server that is soft-deleted can still restore it with its ports.
func TestDeprovision_KeepsPortsWhoseServerNovaMayHave(t *testing.T) {
	t.Parallel()
	forbidden := notifytest.Fault{Request: "GET /servers/detail", Status: http.StatusForbidden}
	for name, tt := range map[string]struct {
		server notifytest.Server
		faults func(id string) []notifytest.Fault
		party  string
	}{
		"soft-deleted": {
			server: notifytest.Server{Host: "z", SoftDeleted: true},
			party:  lease.PartyNeutron,
		},
		"of a project that berth's user may not see": {
			server: notifytest.Server{Host: "z"},
			faults: func(id string) []notifytest.Fault {
				return []notifytest.Fault{{Request: "GET /servers/" + id, Status: http.StatusNotFound}, forbidden}
			},
			party: lease.PartyNova,
		},
		"of a cell that does not answer": {
			server: notifytest.Server{Host: "z"},
			faults: func(id string) []notifytest.Fault {
				return []notifytest.Fault{{Request: "GET /servers/" + id, Status: http.StatusInternalServerError}}
			},
			party: lease.PartyNova,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := networkClaim()
			server := s.nova.AddServer(tt.server)
			port := s.neutron.AddPort(s.apply(c).NetworkID, "compute:nova", server.ID)
			if tt.faults != nil {
				s.nova.InjectFaults(tt.faults(server.ID)...)
			}
			err := s.Deprovision(t.Context(), c)
			var call *lease.CallError
			if !errors.As(err, &call) || call.Party != tt.party {
				t.Errorf("Deprovision: got %v, want an error of %s", err, tt.party)
			}
			all := s.neutron.DeletePort(uuid.NewString())
			if all == s.neutron.DeletePort(port) {
				t.Error("the port of the server is deleted, want it kept")
			}
			s.expectNetworks("while the server may exist", networksFor(c))
		})
	}
}

func TestDeprovision_WithoutNovaEachPortOfAServerKeepsTheNetwork(t *testing.T) {
	t.Parallel()
	neutron := &notifytest.Neutron{}
	server := httptest.NewServer(neutron)
	t.Cleanup(server.Close)
	c, err := cloud.New(cloud.Config{Neutron: server.URL, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := cloudTest{T: t, Cloud: c, neutron: neutron}
	claim := networkClaim()
	neutron.AddPort(s.apply(claim).NetworkID, "compute:nova", "server")
	if err := c.Deprovision(t.Context(), claim); !errors.Is(err, cloud.ErrServersRemain) {
		t.Errorf("Deprovision without Nova: got %v, want ErrServersRemain", err)
	}
	s.expectNetworks("after Deprovision", networksFor(claim))
}

// A user can give the ports of a network so many DHCP options that a list with all attributes of the ports is
// larger than the limit of an answer.
func TestDeprovision_DeletesANetworkWithPortsOfAnySize(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	network := s.apply(c).NetworkID
	for range 2 {
		s.neutron.AddLargePort(network, 17<<20)
	}
	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
}
