package networkstore_test

import (
	"testing"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

func TestAgent_NewAgentsDisabledByConfig(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Network = networkstore.New(s.DB, networkstore.Config{DisableNewAgents: true})
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.heartbeat(network.DHCPAgent, net1)
	fx.heartbeat(network.DHCPAgent, net1)
	fx = fx.withNetwork("10.0.0.0/24")
	p := fx.createPort(cmp1)
	if a := fx.agentOfType(network.DHCPAgent); a.AdminUp || !a.Alive {
		t.Errorf("%+v", a)
	}
	fx.checkDHCPHosts("all agents are disabled", []string{}...)
	if _, err := fx.Network.UpdateAgent(t.Context(), fx.agentOfType(network.DHCPAgent).ID, network.AgentChange{AdminUp: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	fx.heartbeat(network.DHCPAgent, net1)
	fx.checkDHCPHosts("enabled", net1)
	fx.checkPort("created before the agent was enabled", p, network.Down, "L2@cmp-1")
	fx.checkPort("a new port", fx.createPort(cmp1), network.Down, "DHCP@", "L2@cmp-1")
}

func TestAgent_ConcurrentFirstHeartbeatsRegisterOnce(t *testing.T) {
	t.Parallel()
	fx := fixture{Store: storetest.New(t), t: t}
	results := make([]string, 16)
	runConcurrently(len(results), func(i int) { results[i] = fx.heartbeat(network.OVSAgent, cmp1) })

	news := 0
	for _, r := range results {
		if r == network.AgentNew {
			news++
		}
	}
	agents, err := fx.Network.Agents(t.Context(), db.Listing{})
	if err != nil || len(agents) != 1 || news != 1 {
		t.Errorf("%d agents, %d of them new, error %v", len(agents), news, err)
	}
}

func TestAgent_DownAndRevived(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.DHCPAgent, net1)
	storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)

	if fx.agentOfType(network.DHCPAgent).Alive {
		t.Error("an agent without heartbeats is alive")
	}
	fx = fx.withNetwork("10.0.0.0/24")
	if p := fx.createPort(""); len(p.Blocks) != 0 {
		t.Errorf("the network is scheduled to a down agent: %v", blockNames(p.Blocks))
	}
	if r := fx.heartbeat(network.DHCPAgent, net1); r != network.AgentRevived {
		t.Errorf("heartbeat result %s", r)
	}
	if p := fx.createPort(""); len(p.Blocks) != 1 {
		t.Errorf("the next port does not wait for DHCP: %v", blockNames(p.Blocks))
	}
}
