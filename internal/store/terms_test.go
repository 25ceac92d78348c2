package store_test

import (
	"testing"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestNobodyWaitsForDHCPThatSomebodyElseAnswers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	before := ground{Store: openStore(t, url), t: t}
	before.heartbeat(network.OVSAgent, cmp1)
	before.heartbeat(network.DHCPAgent, net1)
	before = before.laid("10.0.0.0/24")
	waiting := make([]network.Port, 3)
	for i := range waiting {
		waiting[i] = before.port(cmp1)
		before.settle(waiting[i].ID, l2on1)
	}

	s := openStore(t, url)
	s.ForgoDHCP()
	g := before
	g.Store = s
	g.is("served until now", waiting[0], network.Down, "DHCP@")
	if err := g.LookAtDHCP(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, p := range waiting {
		g.is("freed", p, network.Active)
	}
	g.is("a new one", g.port(cmp1), network.Down, "L2@cmp-1")
	g = g.laid("10.1.0.0/24")
	g.port(cmp1)
	g.heartbeat(network.DHCPAgent, "net-2")
	g.hostedBy("another network", []string{}...)
}

func TestNewAgentsWaitForAnOperatorWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Doubt()
	g := ground{Store: s, t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g.heartbeat(network.DHCPAgent, net1)
	g.heartbeat(network.DHCPAgent, net1)
	g = g.laid("10.0.0.0/24")
	p := g.port(cmp1)
	if a := g.agent(network.DHCPAgent); a.AdminUp || !a.Alive {
		t.Errorf("%+v", a)
	}
	g.hostedBy("nobody is trusted", []string{}...)
	if _, err := g.UpdateAgent(t.Context(), g.agent(network.DHCPAgent).ID, network.AgentChange{AdminUp: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	g.heartbeat(network.DHCPAgent, net1)
	g.hostedBy("enabled", net1)
	g.is("of before", p, network.Down, "L2@cmp-1")
	g.is("a new one", g.port(cmp1), network.Down, "DHCP@", "L2@cmp-1")
}
