package portstore_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
)

func TestDHCPSchedule_NewAgentTakesUnhostedNetworks(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.heartbeat(network.OVSAgent, cmp1)
	fx = fx.withNetwork("10.0.0.0/24")
	plain, err := fx.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: ptr("p")}})
	if err != nil {
		t.Fatal(err)
	}
	early := fx.createPort(cmp1)

	fx.heartbeat(network.DHCPAgent, net1)
	fx.checkDHCPHosts("after the first heartbeat of a DHCP agent", net1)
	if hosts := fx.dhcpHosts(plain[0].ID); len(hosts) != 0 {
		t.Errorf("agents of a network without DHCP: got %v, want none", hosts)
	}
	if after := fx.readPort(early.ID); len(after.Blocks) != 1 {
		t.Errorf("blocks of a port that is older than the DHCP agent: got %v, want only L2",
			blockNames(after.Blocks))
	}
	if err := fx.Network.UnscheduleNetwork(t.Context(), fx.dhcpAgentID(net1), fx.network.ID); err != nil {
		t.Fatal(err)
	}
	fx.heartbeat(network.DHCPAgent, net1)
	if hosts := fx.dhcpHosts(fx.network.ID); len(hosts) != 0 {
		t.Errorf(
			"heartbeat of an agent from which an operator removed the network: got the network on %v, want it on no agent",
			hosts,
		)
	}
	expireHeartbeats()
	fx.heartbeat(network.DHCPAgent, net1)
	fx.checkDHCPHosts("after the agent has revived", net1)
	if _, err := fx.Network.UpdateAgent(t.Context(), fx.dhcpAgentID(net1), network.AgentChange{AdminUp: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	if err := fx.Network.UnscheduleNetwork(t.Context(), fx.dhcpAgentID(net1), fx.network.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.Network.UpdateAgent(t.Context(), fx.dhcpAgentID(net1), network.AgentChange{AdminUp: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	fx.checkDHCPHosts("after the agent was enabled", net1)
}

func TestDHCPSchedule_DeletedAgentsNetworksAreRescheduled(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1)
	fx.heartbeat(network.DHCPAgent, "net-2")

	if err := fx.Network.UnscheduleNetwork(t.Context(), fx.dhcpAgentID(net1), fx.network.ID); err != nil {
		t.Fatal(err)
	}
	fx.checkDHCPHosts("after an operator unscheduled the network from net-1", "net-2")
	if s := fx.updateStatus(p.ID, dhcpReady); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf(
			"report of an agent that no longer hosts the network: got %+v, want DOWN and the report ignored",
			s,
		)
	}
	if err := fx.Network.DeleteAgent(t.Context(), fx.dhcpAgentID("net-2")); err != nil {
		t.Fatal(err)
	}
	fx.checkDHCPHosts("after the agent on net-2 is deleted", net1)
	if s := fx.updateStatus(p.ID, dhcpReady); s.Status != network.Active {
		t.Errorf("report of the agent that hosts the network again: got %+v, want ACTIVE", s)
	}
}

func TestDHCPSchedule_LiveAgentsShareNetworksOfDownAgents(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.heartbeat(network.DHCPAgent, "dead")
	living := []string{"a", "b", "c"}
	enabled := func(up bool) {
		t.Helper()
		for _, host := range living {
			fx.heartbeat(network.DHCPAgent, host)
			if _, err := fx.Network.UpdateAgent(t.Context(), fx.dhcpAgentID(host), network.AgentChange{AdminUp: &up}); err != nil {
				t.Fatal(err)
			}
		}
	}
	enabled(false) // so that the agent on "dead" gets all networks
	var all []uuid.UUID
	for i := range 9 {
		fx = fx.withNetwork(fmt.Sprintf("10.%d.0.0/24", i))
		all = append(all, fx.network.ID)
	}
	expireHeartbeats()
	enabled(true)

	for range 9 {
		for _, host := range living {
			fx.heartbeat(network.DHCPAgent, host)
		}
	}
	share := map[string]int{}
	for _, id := range all {
		hosts := fx.dhcpHosts(id)
		if len(hosts) != 1 {
			t.Errorf("agents of network %s: got %v, want one", id, hosts)
		}
		for _, h := range hosts {
			share[h]++
		}
	}
	if share["dead"] != 0 || len(share) != 3 {
		t.Errorf(
			"number of networks by host: got %v, want some on each of the three live agents and none on the down agent",
			share,
		)
	}
	if r := fx.heartbeat(network.DHCPAgent, "dead"); r != network.AgentRevived {
		t.Errorf("heartbeat of the down agent: got result %s, want AgentRevived", r)
	}
	if hosts := fx.dhcpHosts(all[0]); len(hosts) != 1 || hosts[0] == "dead" {
		t.Errorf(
			"agents of the former network of a revived agent: got %v, want one, and not the revived agent",
			hosts,
		)
	}
}

func TestDHCPSchedule_ConcurrentNewAgents(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.heartbeat(network.DHCPAgent, "dead")
	fx = fx.withNetwork("10.0.0.0/24")
	expireHeartbeats()
	runConcurrently(8, func(i int) { fx.heartbeat(network.DHCPAgent, fmt.Sprint("net-", i)) })
	if hosts := fx.dhcpHosts(fx.network.ID); len(hosts) != 1 || hosts[0] == "dead" {
		t.Errorf(
			"agents of a network after concurrent heartbeats of eight agents: got %v, want one of these agents",
			hosts,
		)
	}
}

func TestDHCPSchedule_UnscheduleDuringPortCreate(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/16")
	agent := fx.agentOfType(network.DHCPAgent).ID
	enabled := func(up bool) {
		t.Helper()
		if _, err := fx.Network.UpdateAgent(t.Context(), agent, network.AgentChange{AdminUp: &up}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 30 {
		enabled(false) // so that the creation of a port does not schedule the network again
		runConcurrently(5, func(i int) {
			if i > 0 {
				fx.createPort(cmp1)
			} else if err := fx.Network.UnscheduleNetwork(t.Context(), agent, fx.network.ID); err != nil {
				t.Error(err)
			}
		})
		ports, err := fx.Network.Ports(t.Context(), db.Listing{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if d := cmp.Diff([]string{"L2@cmp-1"}, blockNames(p.Blocks)); d != "" {
				t.Fatalf(
					"round %d: unschedule the network while ports are created: blocks of a port differ (-want +got): %s",
					round,
					d,
				)
			}
		}
		enabled(true) // the network is scheduled to the enabled agent again
	}
}
