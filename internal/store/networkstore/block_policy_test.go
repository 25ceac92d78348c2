package networkstore_test

import (
	"testing"
	"time"

	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

func TestBlockPolicy_NoDHCPBlocksWhenDHCPIsDisabled(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	before := ground{Store: storetest.Open(t, url), t: t}
	before.heartbeat(network.OVSAgent, cmp1)
	before.heartbeat(network.DHCPAgent, net1)
	before = before.laid("10.0.0.0/24")
	waiting := make([]network.Port, 3)
	for i := range waiting {
		waiting[i] = before.port(cmp1)
		before.settle(waiting[i].ID, l2on1)
	}

	s := storetest.Open(t, url)
	s.Network = networkstore.New(s.DB, networkstore.Config{NoDHCP: true})
	g := before
	g.Store = s
	g.is("served until now", waiting[0], network.Down, "DHCP@")
	if err := g.Network.ApplyBlockPolicy(t.Context()); err != nil {
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

func TestBlockPolicy_NewDeadlinesApplyToExistingBlocks(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	under := func(p network.BlockPolicy) ground {
		s := storetest.Open(t, url)
		s.Network = networkstore.New(s.DB, networkstore.Config{Policy: p})
		return ground{Store: s, t: t}
	}
	g := under(network.BlockPolicy{"": {Limit: time.Minute, Fatal: true}})
	g.heartbeat(network.OVSAgent, cmp1)
	g = g.laid("10.0.0.0/24")
	ports := []network.Port{g.port(cmp1), g.port(cmp1)}
	storetest.Exec(t, url, `update block set since = since - interval '2 minutes', deadline = deadline - interval '2 minutes'`)
	for _, p := range ports {
		g.settle(p.ID)
		g.is("too late", p, network.Errored, "L2@cmp-1")
	}

	for i, today := range []struct {
		policy network.BlockPolicy
		status string
	}{
		{network.BlockPolicy{"": {Limit: time.Minute}}, network.Down},
		{network.BlockPolicy{"": {Limit: time.Hour, Fatal: true}}, network.Down},
		{network.BlockPolicy{"DHCP": {Limit: time.Second, Fatal: true}}, network.Down},
		{network.BlockPolicy{"L2": {Limit: time.Second, Fatal: true}}, network.Errored},
		{nil, network.Down},
	} {
		g.Store = under(today.policy).Store
		if err := g.Network.ApplyBlockPolicy(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			g.is("under policy", p, today.status, "L2@cmp-1")
			limit, fatal := today.policy.Limit(network.L2)
			b := g.look(p.ID).Blocks[0]
			if b.Fatal != fatal || (b.Deadline != nil) != (limit > 0) || b.Deadline != nil && !b.Deadline.Equal(b.Since.Add(limit)) {
				t.Errorf("policy %d: %+v", i, b)
			}
		}
	}
}

func TestAgent_NewAgentsDisabledByConfig(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Network = networkstore.New(s.DB, networkstore.Config{DisableNewAgents: true})
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
	if _, err := g.Network.UpdateAgent(t.Context(), g.agent(network.DHCPAgent).ID, network.AgentChange{AdminUp: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	g.heartbeat(network.DHCPAgent, net1)
	g.hostedBy("enabled", net1)
	g.is("of before", p, network.Down, "L2@cmp-1")
	g.is("a new one", g.port(cmp1), network.Down, "DHCP@", "L2@cmp-1")
}

func TestBlockPolicy_DeadlineStartsWhenPortIsEnabled(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	s.Network = networkstore.New(s.DB, networkstore.Config{Policy: network.BlockPolicy{network.L2: {Limit: time.Hour, Fatal: true}}})
	g := ground{Store: s, t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g = g.laid("10.0.0.0/24")
	p := g.port(cmp1, adminDown)
	storetest.Exec(t, url, `update block set since = since - interval '2 hours', deadline = deadline - interval '2 hours'`)
	old := g.look(p.ID).Blocks[0]

	g.update(p.ID, network.PortChange{AdminUp: ptr(true)})

	g.is("its agent may begin", p, network.Down, "L2@cmp-1")
	b := g.look(p.ID).Blocks[0]
	if b.Since.Sub(old.Since) < 2*time.Hour || b.Deadline == nil || !b.Deadline.Equal(b.Since.Add(time.Hour)) {
		t.Errorf("it waits since %s until %v, and did since %s", b.Since, b.Deadline, old.Since)
	}
	g.update(p.ID, network.PortChange{Name: ptr("other"), AdminUp: ptr(true)})
	if again := g.look(p.ID).Blocks[0]; !again.Since.Equal(b.Since) {
		t.Errorf("a change that brings it not up has it wait anew: %s, %s", b.Since, again.Since)
	}
}
