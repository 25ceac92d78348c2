package networkstore_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// aged is a ground on a database in which tests let time pass.
func aged(t *testing.T) (ground, func()) {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	return ground{Store: s, t: t}, func() {
		t.Helper()
		storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)
	}
}

// hosting lists the hosts of the network's DHCP agents.
func (g ground) hosting(id uuid.UUID) []string {
	g.t.Helper()
	agents, err := g.Network.Agents(g.t.Context(), db.Listing{Where: []db.Condition{{Field: "network", In: []string{id.String()}}},
		Sort: []db.Order{{Field: "host"}}})
	if err != nil {
		g.t.Fatal(err)
	}
	hosts := []string{}
	for _, a := range agents {
		hosts = append(hosts, a.Host)
	}
	return hosts
}

// dhcp is the ID of the DHCP agent on that host.
func (g ground) dhcp(host string) uuid.UUID {
	g.t.Helper()
	agents, err := g.Network.Agents(g.t.Context(), db.Listing{Where: []db.Condition{{Field: "host", In: []string{host}}}})
	if err != nil || len(agents) != 1 {
		g.t.Fatalf("%d agents on %s: %v", len(agents), host, err)
	}
	return agents[0].ID
}

func (g ground) hostedBy(what string, want ...string) {
	g.t.Helper()
	if d := cmp.Diff(want, g.hosting(g.network.ID)); d != "" {
		g.t.Errorf("%s: %s", what, d)
	}
}

func TestDHCPSchedule_NewAgentTakesUnhostedNetworks(t *testing.T) {
	t.Parallel()
	g, pass := aged(t)
	g.heartbeat(network.OVSAgent, cmp1)
	g = g.laid("10.0.0.0/24")
	plain, err := g.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: ptr("p")}})
	if err != nil {
		t.Fatal(err)
	}
	early := g.port(cmp1)

	g.heartbeat(network.DHCPAgent, net1)
	g.hostedBy("a new agent", net1)
	if hosts := g.hosting(plain[0].ID); len(hosts) != 0 {
		t.Errorf("a network without DHCP is hosted by %v", hosts)
	}
	if after := g.look(early.ID); len(after.Blocks) != 1 {
		t.Errorf("a port that never waited for DHCP does now: %v", entities(after.Blocks))
	}
	if err := g.Network.UnscheduleNetwork(t.Context(), g.dhcp(net1), g.network.ID); err != nil {
		t.Fatal(err)
	}
	g.heartbeat(network.DHCPAgent, net1)
	if hosts := g.hosting(g.network.ID); len(hosts) != 0 {
		t.Errorf("an operator's word holds for the length of a heartbeat: %v", hosts)
	}
	pass()
	g.heartbeat(network.DHCPAgent, net1)
	g.hostedBy("an agent that came back", net1)
	if _, err := g.Network.UpdateAgent(t.Context(), g.dhcp(net1), network.AgentChange{AdminUp: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	if err := g.Network.UnscheduleNetwork(t.Context(), g.dhcp(net1), g.network.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Network.UpdateAgent(t.Context(), g.dhcp(net1), network.AgentChange{AdminUp: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	g.hostedBy("an agent that was enabled", net1)
}

func TestDHCPSchedule_DeletedAgentsNetworksAreRescheduled(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, l2on1)
	g.heartbeat(network.DHCPAgent, "net-2")

	if err := g.Network.UnscheduleNetwork(t.Context(), g.dhcp(net1), g.network.ID); err != nil {
		t.Fatal(err)
	}
	g.hostedBy("taken from one by an operator", "net-2")
	if s := g.settle(p.ID, dhcpOK); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf("the report of an agent that hosts the network no longer: %+v", s)
	}
	if err := g.Network.DeleteAgent(t.Context(), g.dhcp("net-2")); err != nil {
		t.Fatal(err)
	}
	g.hostedBy("its agent was deleted", net1)
	if s := g.settle(p.ID, dhcpOK); s.Status != network.Active {
		t.Errorf("the report of its third agent: %+v", s)
	}
}

func TestDHCPSchedule_LiveAgentsShareNetworksOfDownAgents(t *testing.T) {
	t.Parallel()
	g, pass := aged(t)
	g.heartbeat(network.DHCPAgent, "dead")
	living := []string{"a", "b", "c"}
	enabled := func(up bool) {
		t.Helper()
		for _, host := range living {
			g.heartbeat(network.DHCPAgent, host)
			if _, err := g.Network.UpdateAgent(t.Context(), g.dhcp(host), network.AgentChange{AdminUp: &up}); err != nil {
				t.Fatal(err)
			}
		}
	}
	enabled(false) // so that the other one gets all networks
	var all []uuid.UUID
	for i := range 9 {
		g = g.laid(fmt.Sprintf("10.%d.0.0/24", i))
		all = append(all, g.network.ID)
	}
	pass()
	enabled(true)

	for range 9 {
		for _, host := range living {
			g.heartbeat(network.DHCPAgent, host)
		}
	}
	share := map[string]int{}
	for _, id := range all {
		hosts := g.hosting(id)
		if len(hosts) != 1 {
			t.Errorf("%s is hosted by %v", id, hosts)
		}
		for _, h := range hosts {
			share[h]++
		}
	}
	if share["dead"] != 0 || len(share) != 3 {
		t.Errorf("shared as %v", share)
	}
	if r := g.heartbeat(network.DHCPAgent, "dead"); r != network.AgentRevived {
		t.Errorf("the agent is %s", r)
	}
	if hosts := g.hosting(all[0]); len(hosts) != 1 || hosts[0] == "dead" {
		t.Errorf("what was taken over is hosted by %v", hosts)
	}
}

func TestDHCPSchedule_ConcurrentNewAgents(t *testing.T) {
	t.Parallel()
	g, pass := aged(t)
	g.heartbeat(network.DHCPAgent, "dead")
	g = g.laid("10.0.0.0/24")
	pass()
	together(8, func(i int) { g.heartbeat(network.DHCPAgent, fmt.Sprint("net-", i)) })
	if hosts := g.hosting(g.network.ID); len(hosts) != 1 || hosts[0] == "dead" {
		t.Errorf("hosted by %v", hosts)
	}
}
