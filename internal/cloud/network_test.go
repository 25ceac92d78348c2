package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

func networkClaim() lease.CloudReservation {
	return lease.CloudReservation{
		Project: "red",
		Segment: lease.Segment{NetworkType: "vlan", PhysicalNetwork: "physnet1", ID: 100},
		Reservation: lease.Reservation{
			ID: id,
			ReservationDraft: lease.ReservationDraft{
				Type:               lease.NetworkSegment,
				NetworkName:        "lab",
				NetworkDescription: "VSwitchName=lab",
			},
		},
	}
}

// networksFor returns the networks that Neutron must have for a reservation.
func networksFor(c lease.CloudReservation) []notifytest.Network {
	if c.Type != lease.NetworkSegment {
		return nil
	}
	return []notifytest.Network{
		{
			Name:            "lab",
			Description:     "VSwitchName=lab",
			Project:         "red",
			Type:            "vlan",
			PhysicalNetwork: "physnet1",
			Segment:         100,
			Tags:            []string{"blazar", "reservation:" + c.ID.String()},
		},
	}
}

func (s cloudTest) expectNetworks(what string, want []notifytest.Network) {
	s.Helper()
	if d := cmp.Diff(want, s.neutron.Networks(), cmpopts.IgnoreFields(notifytest.Network{}, "ID"), cmpopts.EquateEmpty()); d != "" {
		s.Errorf("networks %s (-want +got):\n%s", what, d)
	}
}

func TestProvision_CreatesTheNetworkOfASegmentOnce(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	ids := s.apply(c)
	s.expectNetworks("after Provision", networksFor(c))
	if again := s.apply(c); again.NetworkID != ids.NetworkID || ids.NetworkID != s.neutron.Networks()[0].ID {
		t.Errorf("ID of the network: got %q and then %q, want twice %q",
			ids.NetworkID, again.NetworkID, s.neutron.Networks()[0].ID)
	}
	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
	s.remove(c)
}

// A process can die after any answer of Neutron; the next attempt must find what the dead process has
// created.
func TestProvision_KilledAfterAnyRequestLeavesOneNetwork(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	for after := 1; ; after++ {
		lived := s.killed(after,
			func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
		s.apply(c)
		s.expectNetworks("after a killed Provision and another one", networksFor(c))
		s.remove(c)
		if lived {
			return
		}
	}
}

func TestDeprovision_DeletesWhatHangsOnTheNetwork(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	network := s.apply(c).NetworkID
	s.neutron.AddSubnet(network)
	s.neutron.AddPort(network, "network:router_interface", uuid.NewString())
	s.neutron.AddPort(network, "network:dhcp", "dhcp")
	s.neutron.AddPort(network, "", "")

	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
}

// The owner of a network can create a port with any owner that begins with "network:", also as if it were the
// interface of a router that does not exist. Neutron deletes only ports of its own agents with the network.
func TestDeprovision_DeletesPortsThatOnlyLookLikeThoseOfNeutron(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"network:foo", "network:router_interface", "network:router_gateway"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := networkClaim()
			id := s.apply(c).NetworkID
			s.neutron.AddSubnet(id)
			s.neutron.AddPort(id, owner, notifytest.AbsentRouter)

			s.remove(c)
			s.expectNetworks("after Deprovision", nil)
		})
	}
}

func TestDeprovision_WaitsForServersOnTheNetwork(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"compute:nova", "baremetal:none"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := networkClaim()
			network := s.apply(c).NetworkID
			// Deprovision must not delete this port either while the server's port exists
			s.neutron.AddPort(network, "", "")
			port := s.neutron.AddPort(network, owner, s.nova.AddServer(notifytest.Server{Host: "z"}).ID)
			err := s.Deprovision(t.Context(), c)
			var call *lease.CallError
			if !errors.Is(err, cloud.ErrServersRemain) || !errors.As(err, &call) ||
				call.Party != lease.PartyNeutron {
				t.Errorf(
					"remove a network with the port of a server: got %v, want ErrServersRemain of Neutron",
					err,
				)
			}
			s.expectNetworks("while a server has a port", networksFor(c))
			if n := s.neutron.DeletePort(port); n != 1 {
				t.Errorf("ports beside the port of the server: got %d, want the one that the network had", n)
			}
			s.remove(c)
			s.expectNetworks("after the server is deleted", nil)
		})
	}
}

// Nova can create the port of a server between any two requests of berth.
func TestDeprovision_DeletesNoPortOfAServerThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	c := networkClaim()
	for after := 1; ; after++ {
		s := newCloudTest(t)
		network := s.apply(c).NetworkID
		s.neutron.AddPort(network, "", "")
		s.neutron.AddDistributedInterface(network)
		server := ""
		s.killer.mu.Lock()
		s.killer.left, s.killer.kill = after, func() {
			server = s.neutron.AddPort(network, "compute:nova", s.nova.AddServer(notifytest.Server{}).ID)
		}
		s.killer.mu.Unlock()
		err := s.Deprovision(t.Context(), c)
		s.killer.mu.Lock()
		created := server
		s.killer.mu.Unlock()
		if created == "" {
			return
		}
		if all := s.neutron.DeletePort(uuid.NewString()); all == s.neutron.DeletePort(created) {
			t.Errorf("server on the network after %d requests: its port is deleted; error %v", after, err)
		}
	}
}

// Users may rename their network, and every project may choose the names and the tags of its networks.
func TestDeprovision_FindsTheNetworkAndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	other := networkClaim()
	other.Project, other.ID, other.Segment.ID = "blue", uuid.New(), 101
	otherID := s.apply(other).NetworkID
	c.NetworkID = s.apply(c).NetworkID
	s.neutron.SetNetwork(c.NetworkID, "mine", nil)
	s.neutron.SetNetwork(otherID, "reservation:"+c.ID.String(), []string{"reservation:" + c.ID.String()})

	s.remove(c)
	if left := s.neutron.Networks(); len(left) != 1 || left[0].Project != "blue" {
		t.Errorf("networks after Deprovision: got %+v, want only the network of project blue", left)
	}
}

// A member of the project can give the tag or the first name of the reservation's network to other networks
// of the project. If berth took such a network for the reservation's network, the project would keep the
// reserved segment after the end of the lease.
func TestProvision_TakesOnlyANetworkOnTheReservedSegment(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c, decoy := networkClaim(), networkClaim()
	decoy.ID, decoy.Segment.ID = uuid.New(), 101
	decoyID := s.apply(decoy).NetworkID
	mark := "reservation:" + c.ID.String()
	s.neutron.SetNetwork(decoyID, mark, []string{mark})

	c.NetworkID = s.apply(c).NetworkID
	if c.NetworkID == decoyID {
		t.Fatal("the reservation has a network on another segment")
	}
	s.neutron.SetNetwork(c.NetworkID, "mine", nil)
	if again := s.apply(c).NetworkID; again != c.NetworkID {
		t.Errorf("network of the reservation after a second Provision: got %s, want still %s",
			again, c.NetworkID)
	}
	s.remove(c)
	if left := s.neutron.Networks(); len(left) != 1 || left[0].ID != decoyID {
		t.Errorf("networks after Deprovision: got %+v, want only the network on the other segment", left)
	}
}

// A member can give any network of the project the name and the tag of a reservation that has ended. If its
// removal tried to delete such networks, servers on them would make the removal fail again and again.
func TestDeprovision_OfALeftoverDeletesOnlyANetworkOnItsSegment(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c, decoy := networkClaim(), networkClaim()
	decoy.ID, decoy.Segment.ID = uuid.New(), 101
	decoyID := s.apply(decoy).NetworkID
	s.apply(c)
	mark := "reservation:" + c.ID.String()
	s.neutron.SetNetwork(decoyID, mark, []string{mark})
	unknown := c
	unknown.Segment = lease.Segment{}

	s.remove(unknown)
	if left := s.neutron.Networks(); len(left) != 2 {
		t.Errorf("networks after a removal without the segment and the ID: got %+v, want both", left)
	}
	s.remove(c)
	if left := s.neutron.Networks(); len(left) != 1 || left[0].ID != decoyID {
		t.Errorf("networks after the removal: got %+v, want only the network on the other segment", left)
	}
}

// Neutron does not remove a router interface while a floating IP of a port needs it.
func TestDeprovision_DeletesPortsBeforeRouterInterfaces(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	network := s.apply(c).NetworkID
	s.neutron.AddPort(network, "network:router_interface", uuid.NewString())
	port := s.neutron.AddPort(network, "", "")
	s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: uuid.NewString(), IP: "198.51.100.7", Port: &port})

	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
}

// obstacles are what members of a project can create so that Neutron refuses to delete a network and its
// ports. Neutron itself creates the second port of a distributed router.
var obstacles = map[string]func(s cloudTest, network, address string){
	"the interface of a distributed router with a gateway": func(s cloudTest, network, _ string) {
		s.neutron.AddDistributedInterface(network)
	},
	"the parent port of a trunk": func(s cloudTest, network, _ string) {
		s.neutron.AddTrunk(true, s.neutron.AddPort(network, "", ""))
	},
	"the parent port of a disabled trunk": func(s cloudTest, network, _ string) {
		s.neutron.AddTrunk(false, s.neutron.AddPort(network, "", ""))
	},
	"a subport": func(s cloudTest, network, _ string) {
		parent := s.neutron.AddPort(uuid.NewString(), "compute:nova", "server")
		s.neutron.AddTrunk(true, parent, s.neutron.AddPort(network, "trunk:subport", ""))
	},
	"a subport of a disabled trunk": func(s cloudTest, network, _ string) {
		parent := s.neutron.AddPort(uuid.NewString(), "", "")
		s.neutron.AddTrunk(false, parent, s.neutron.AddPort(network, "trunk:subport", ""))
	},
	"a router interface that is a subport": func(s cloudTest, network, _ string) {
		parent := s.neutron.AddPort(uuid.NewString(), "", "")
		s.neutron.AddTrunk(true, parent, s.neutron.AddPort(network, "network:router_interface", uuid.NewString()))
	},
	"a subport with the owner of a DHCP port": func(s cloudTest, network, _ string) {
		parent := s.neutron.AddPort(uuid.NewString(), "", "")
		s.neutron.AddTrunk(true, parent, s.neutron.AddPort(network, "network:dhcp", ""))
	},
	"a route": func(s cloudTest, network, address string) {
		router := uuid.NewString()
		s.neutron.AddPort(network, "network:router_interface", router)
		s.neutron.SetRoutes(router, notifytest.Route{Destination: "192.0.2.0/24", NextHop: address})
	},
	"a route beside one that has become invalid": func(s cloudTest, network, address string) {
		router := uuid.NewString()
		s.neutron.AddPort(network, "network:router_interface", router)
		s.neutron.SetRoutes(router, notifytest.Route{Destination: "192.0.2.0/24", NextHop: address},
			notifytest.Route{Destination: "198.51.100.0/24", NextHop: "203.0.113.1"})
	},
	"a floating IP of a DHCP port": func(s cloudTest, network, _ string) {
		s.neutron.AddPort(network, "network:router_interface", uuid.NewString())
		port := s.neutron.AddPort(network, "network:dhcp", "")
		s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: uuid.NewString(), IP: "198.51.100.7", Port: &port})
	},
	"a floating IP of a port of the network": func(s cloudTest, network, _ string) {
		s.neutron.AddPort(network, "network:router_interface", uuid.NewString())
		port := s.neutron.AddPort(network, "network:foo", "")
		s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: uuid.NewString(), IP: "198.51.100.8", Port: &port})
	},
	"a port with the owner of a server that does not exist": func(s cloudTest, network, _ string) {
		s.neutron.AddPort(network, "compute:nova", uuid.NewString())
	},
	"a port forwarding to a DHCP port": func(s cloudTest, network, _ string) {
		s.neutron.AddPort(network, "network:router_interface", uuid.NewString())
		port := s.neutron.AddPort(network, "network:dhcp", "")
		s.neutron.AddPortForwardings(
			notifytest.FloatingIP{Network: uuid.NewString(), IP: "198.51.100.9"}, port, port)
	},
	"an interface that its router does not have": func(s cloudTest, network, _ string) {
		s.neutron.AddForgedPort(network, "network:router_interface", uuid.NewString())
	},
	"an interface with a device that leads to another path": func(s cloudTest, network, _ string) {
		s.neutron.AddForgedPort(network, "network:router_interface", "../..")
	},
	"a gateway that its router does not have": func(s cloudTest, network, _ string) {
		s.neutron.AddForgedPort(network, "network:router_gateway", uuid.NewString())
	},
	"a port of a floating IP that has another one": func(s cloudTest, network, _ string) {
		s.neutron.AddForgedPort(network, "network:floatingip", uuid.NewString())
	},
	"a port for the agents of a router": func(s cloudTest, network, _ string) {
		s.neutron.AddForgedPort(network, "network:floatingip_agent_gateway", uuid.NewString())
	},
	"a second port of a distributed router that does not have it": func(s cloudTest, network, _ string) {
		s.neutron.AddForgedPort(network, "network:router_centralized_snat", uuid.NewString())
	},
}

func TestDeprovision_NothingOnTheNetworkKeepsIt(t *testing.T) {
	t.Parallel()
	for name, add := range obstacles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := networkClaim()
			network := s.apply(c).NetworkID
			add(s, network, s.neutron.AddSubnet(network))
			s.remove(c)
			s.expectNetworks("after Deprovision", nil)
		})
	}
}

// Neutron deletes the ports of a router with the interface of the router.
func TestDeprovision_DeletesNoPortThatARouterHas(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	snat, routerInterface := s.neutron.AddDistributedInterface(s.apply(c).NetworkID)
	for _, port := range []string{snat, routerInterface} {
		s.neutron.InjectFaults(notifytest.Fault{Request: "DELETE /ports/" + port, Status: http.StatusTeapot})
	}
	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
}

// A quota of routes that is smaller than their number makes Neutron refuse the routes that should stay.
func TestDeprovision_QuotaOfRoutesKeepsNoNetwork(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	network, router := s.apply(c).NetworkID, uuid.NewString()
	s.neutron.AddPort(network, "network:router_interface", router)
	s.neutron.SetRoutes(router, notifytest.Route{Destination: "192.0.2.0/24", NextHop: s.neutron.AddSubnet(network)})
	refused := notifytest.Fault{Request: "PUT /routers/" + router, Status: http.StatusConflict}
	refused.Times = 2 // the removal of the interface, and the first change of the routes
	s.neutron.InjectFaults(refused)
	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
}

// Neutron refuses a change of a router that another request has changed since berth has read it.
func TestDeprovision_ChangesOfTheRouterKeepNoNetwork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		changes int
		kept    bool // whether the last of these routes is kept
	}{
		"one change":   {changes: 1, kept: true},
		"each request": {changes: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := networkClaim()
			network, other, router := s.apply(c).NetworkID, uuid.NewString(), uuid.NewString()
			s.neutron.AddPort(network, "network:router_interface", router)
			s.neutron.AddPort(other, "network:router_interface", router)
			hop, otherHop := s.neutron.AddSubnet(network), s.neutron.AddSubnet(other)
			reserved := notifytest.Route{Destination: "192.0.2.0/24", NextHop: hop}
			s.neutron.SetRoutes(router, reserved)
			added := notifytest.Route{Destination: "198.51.100.0/24", NextHop: otherHop}
			s.atEach(func(r *http.Request) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/routers/"+router) && tt.changes > 0 {
					tt.changes--
					s.neutron.SetRoutes(router, reserved, added)
				}
			})
			s.remove(c)
			s.expectNetworks("after Deprovision", nil)
			if left := s.neutron.Routes(router); tt.kept && !slices.Equal(left, []notifytest.Route{added}) {
				t.Errorf("routes of the router: got %+v, want the one that was added meanwhile", left)
			}
		})
	}
}

// A process can die after any answer of Neutron; the next attempt must delete what is left.
func TestDeprovision_KilledAfterAnyRequestDeletesTheNetwork(t *testing.T) {
	t.Parallel()
	c := networkClaim()
	for after := 1; ; after++ {
		s := newCloudTest(t)
		network := s.apply(c).NetworkID
		address := s.neutron.AddSubnet(network)
		for _, add := range obstacles {
			add(s, network, address)
		}
		lived := s.killed(after, func(ctx context.Context) error { return s.Deprovision(ctx, c) })
		s.remove(c)
		s.expectNetworks("after a killed Deprovision and another one", nil)
		if lived {
			return
		}
	}
}

// Only the routes, trunks and floating IPs of the network are in the way.
func TestDeprovision_KeepsRoutesTrunksAndFloatingIPsOfOtherNetworks(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	network, other, router := s.apply(c).NetworkID, uuid.NewString(), uuid.NewString()
	hop, otherHop := s.neutron.AddSubnet(network), s.neutron.AddSubnet(other)
	s.neutron.AddPort(network, "network:router_interface", router)
	s.neutron.AddPort(other, "network:router_interface", router)
	kept := notifytest.Route{Destination: "198.51.100.0/24", NextHop: otherHop}
	s.neutron.SetRoutes(router, notifytest.Route{Destination: "192.0.2.0/24", NextHop: hop}, kept)
	parent, sub := s.neutron.AddPort(other, "", ""), s.neutron.AddPort(other, "", "")
	s.neutron.AddTrunk(true, parent, sub, s.neutron.AddPort(network, "", ""))
	s.neutron.PutFloatingIP(notifytest.FloatingIP{Network: uuid.NewString(), IP: "198.51.100.7", Port: &parent})
	dhcp := s.neutron.AddPort(network, "network:dhcp", "")
	s.neutron.AddPortForwardings(notifytest.FloatingIP{Network: uuid.NewString(), IP: "198.51.100.8"}, dhcp, sub)

	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
	if d := cmp.Diff([]notifytest.Route{kept}, s.neutron.Routes(router)); d != "" {
		t.Errorf("routes of the router (-want +got):\n%s", d)
	}
	all := s.neutron.Trunks()
	if len(all) != 1 || len(all[0].Subports) != 1 || all[0].Subports[0].Port != sub {
		t.Errorf("trunks: got %+v, want one trunk with the subport %s", all, sub)
	}
	if f := s.neutron.FloatingIPs()[0]; f.Port == nil || *f.Port != parent {
		t.Errorf("floating IP on another network: got %+v, want still one of port %s", f, parent)
	}
	if left := s.neutron.PortForwardings(); len(left) != 1 || left[0].Port != sub {
		t.Errorf("port forwardings: got %+v, want only the one to port %s on another network", left, sub)
	}
}

func TestDeprovision_NeutronWithoutTrunksHasNone(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := networkClaim()
	port := s.neutron.AddPort(s.apply(c).NetworkID, "", "")
	s.neutron.InjectFaults(
		notifytest.Fault{Request: "DELETE /ports/" + port, Status: http.StatusConflict},
		notifytest.Fault{Request: "GET /trunks", Status: http.StatusNotFound, Times: 2},
	)
	s.remove(c)
	s.expectNetworks("after Deprovision", nil)
}

// Neutron has the trunks of all projects. Only their parents are a filter of the list.
func TestDeprovision_ListsAllTrunksOnlyForASubport(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		add  func(s cloudTest, network, address string)
		want func(uri string) bool // whether the request for a list of trunks is necessary
	}{
		"no trunk": {
			add:  func(cloudTest, string, string) {},
			want: func(string) bool { return false },
		},
		"parent": {
			add:  obstacles["the parent port of a trunk"],
			want: func(uri string) bool { return strings.Contains(uri, "?port_id=") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := networkClaim()
			network := s.apply(c).NetworkID
			s.neutron.AddTrunk(true, s.neutron.AddPort(uuid.NewString(), "", ""))
			for _, harmless := range []string{"the interface of a distributed router with a gateway", "a route",
				"a floating IP of a DHCP port", "a gateway that its router does not have"} {
				obstacles[harmless](s, network, s.neutron.AddSubnet(network))
			}
			s.neutron.AddPort(network, "", "")
			tt.add(s, network, "")
			s.atEach(func(r *http.Request) {
				if uri := r.URL.RequestURI(); strings.HasPrefix(uri, "/v2.0/trunks") && r.Method == http.MethodGet && !tt.want(uri) {
					t.Errorf("the removal of a network reads %s", uri)
				}
			})
			s.remove(c)
			s.expectNetworks("after Deprovision", nil)
		})
	}
}
