package networkstore_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// A host moves its own tunnel endpoint, and takes over the endpoint of a host without agents, but not the
// endpoint of a host with an agent.
func TestSyncTunnel_OwnerOnlyRefusesTheEndpointOfAnotherHost(t *testing.T) {
	t.Parallel()
	s := storetest.New(t).Network
	first := netip.MustParseAddr("192.0.2.1")
	second := netip.MustParseAddr("192.0.2.2")
	third := netip.MustParseAddr("192.0.2.3")
	sync := func(host string, ip netip.Addr) error {
		t.Helper()
		_, err := s.SyncTunnel(t.Context(), network.TunnelEndpoint{Type: "vxlan", Host: host, IP: ip}, true)
		return err
	}
	owners := func() map[netip.Addr]string {
		t.Helper()
		ends, err := s.TunnelEnds(t.Context(), "vxlan")
		if err != nil {
			t.Fatal(err)
		}
		found := map[netip.Addr]string{}
		for _, e := range ends {
			found[e.IP] = e.Host
		}
		return found
	}
	if _, err := s.ReportState(t.Context(), network.AgentState{Type: "Open vSwitch agent", Host: "cmp-1", Configurations: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		host    string
		ip      netip.Addr
		refused bool
	}{{"cmp-1", first, false}, {"cmp-2", second, false}, {"cmp-2", first, true}, {"cmp-1", third, false}, {"cmp-1", second, false}} {
		if err := sync(step.host, step.ip); errors.Is(err, db.ErrConflict) != step.refused ||
			err != nil && !step.refused {
			t.Errorf("sync %s of %s: got error %v, want that it is refused: %t",
				step.ip, step.host, err, step.refused)
		}
		if step.refused {
			if got := owners(); len(got) != 2 || got[first] != "cmp-1" || got[second] != "cmp-2" {
				t.Errorf("tunnel endpoints after the refused sync: got %v, want those from before", got)
			}
		}
	}
	if got := owners(); len(got) != 1 || got[second] != "cmp-1" {
		t.Errorf("tunnel endpoints: got %v, want only %s of cmp-1, because cmp-2 has no agent", got, second)
	}
}

// An agent synchronises its tunnel endpoint each time that it starts, and reads the endpoints of all hosts in
// the answer. The agents of the other hosts know the endpoint already.
func TestSyncTunnel_UnchangedEndpointNotifiesNoHost(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tunnels := networkstore.New(s.DB, networkstore.Config{NotifyAgents: true})
	for _, step := range []struct {
		host, ip string
		want     []string
	}{
		{"cmp-1", "192.0.2.1", []string{"updated 192.0.2.1"}},
		{"cmp-2", "192.0.2.2", []string{"updated 192.0.2.2"}},
		{"cmp-1", "192.0.2.1", nil},
		{"cmp-1", "192.0.2.3", []string{"deleted 192.0.2.1", "updated 192.0.2.3"}},
		{"cmp-1", "192.0.2.3", nil},
		{"cmp-3", "192.0.2.2", []string{"updated 192.0.2.2"}},
	} {
		end := network.TunnelEndpoint{Type: "vxlan", Host: step.host, IP: netip.MustParseAddr(step.ip)}
		all, err := tunnels.SyncTunnel(t.Context(), end, false)
		if err != nil || !slices.Contains(all, end) {
			t.Errorf("sync %s of %s: got %v, error %v; want an answer with it", step.ip, step.host, all, err)
		}
		due, err := s.Notifications.Unsent(t.Context(), network.NotificationQueue(network.ResourceTunnel, ""), 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var ids []int64
		for _, n := range due {
			var about network.TunnelEndpoint
			if err := json.Unmarshal(n.Data, &about); err != nil {
				t.Fatal(err)
			}
			got, ids = append(got, n.Event+" "+about.IP.String()), append(ids, n.ID)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("notifications after the sync %s of %s: got %v, want %v", step.ip, step.host, got, step.want)
		}
		if err := s.Notifications.MarkSent(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
	}
}

// The conditions select the objects that a host needs, and nothing that only another host needs.
func TestHostConditions_SelectOnlyWhatTheHostNeeds(t *testing.T) {
	t.Parallel()
	s := storetest.New(t).Network
	project, kind := "p1", network.VXLAN
	names := []string{"one", "two"}
	var networks []network.Network
	for i := range names {
		made, err := s.CreateNetworks(t.Context(),
			[]network.NetworkChange{{Name: &names[i], Project: &project, Type: &kind}})
		if err != nil {
			t.Fatal(err)
		}
		networks = append(networks, made[0])
	}
	hosts := []string{"cmp-1", "cmp-2"}
	var ports []network.Port
	for i := range hosts {
		if _, err := s.ReportState(t.Context(), network.AgentState{Type: "Open vSwitch agent", Host: hosts[i], Configurations: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		made, err := s.CreatePorts(t.Context(),
			[]network.PortChange{{Network: &networks[i].ID, Host: &hosts[i], Project: &project}})
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, made[0])
	}
	where := func(c db.Condition) db.Listing { return db.Listing{Where: []db.Condition{c}} }

	for i, host := range hosts {
		foundPorts, err := s.Ports(t.Context(), where(networkstore.OnHost(host)))
		if err != nil || len(foundPorts) != 1 || foundPorts[0].ID != ports[i].ID {
			t.Errorf("ports on %s: got %v, error %v, want %s", host, foundPorts, err, ports[i].ID)
		}
		foundNetworks, err := s.Networks(t.Context(), where(networkstore.OnHost(host)))
		if err != nil || len(foundNetworks) != 1 || foundNetworks[0].ID != networks[i].ID {
			t.Errorf("networks on %s: got %v, error %v, want %s", host, foundNetworks, err, networks[i].ID)
		}
		groups, err := s.SecurityGroups(t.Context(), where(networkstore.OnHost(host)))
		var ids []uuid.UUID
		for _, g := range groups {
			ids = append(ids, g.ID)
		}
		if err != nil || !slices.Equal(ids, ports[i].SecurityGroups) {
			t.Errorf("security groups on %s: got %v, error %v, want %v",
				host, ids, err, ports[i].SecurityGroups)
		}
		remote, err := s.SecurityGroups(t.Context(), where(networkstore.RemoteGroupsOf(host)))
		if err != nil || len(remote) != 1 || remote[0].ID != ports[i].SecurityGroups[0] {
			t.Errorf(
				"remote groups of %s: got %v, error %v, want the default group, whose rules name it",
				host, remote, err,
			)
		}
		for _, served := range []db.Condition{networkstore.ServedByDHCPOf(host)} {
			if found, err := s.Networks(t.Context(), where(served)); err != nil || len(found) != 0 {
				t.Errorf(
					"networks of the DHCP agent on %s, which has none: got %v, error %v, want none",
					host, found, err,
				)
			}
		}
	}
	if found, err := s.Ports(t.Context(), where(networkstore.OnHost("cmp-3"))); err != nil ||
		len(found) != 0 {
		t.Errorf("ports on a host without ports: got %v, error %v, want none", found, err)
	}
}
