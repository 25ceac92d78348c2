package portstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

func TestAgent_NewAgentsDisabledByConfig(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Network = portstore.New(s.DB, portstore.Config{Network: networkstore.Config{DisableNewAgents: true}})
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.heartbeat(network.DHCPAgent, net1)
	fx.heartbeat(network.DHCPAgent, net1)
	fx = fx.withNetwork("10.0.0.0/24")
	p := fx.createPort(cmp1)
	if a := fx.agentOfType(network.DHCPAgent); a.AdminUp || !a.Alive {
		t.Errorf("the DHCP agent of the fixture: got %+v, want it alive and disabled", a)
	}
	fx.checkDHCPHosts("all agents are disabled", []string{}...)
	if _, err := fx.Network.UpdateAgent(t.Context(), fx.agentOfType(network.DHCPAgent).ID, network.AgentChange{AdminUp: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	fx.heartbeat(network.DHCPAgent, net1)
	fx.checkDHCPHosts("after the DHCP agent was enabled", net1)
	fx.checkPort("created before the DHCP agent was enabled", p, network.Down, "L2@cmp-1")
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
		t.Errorf(
			"concurrent first heartbeats of one agent: got %d agents, %d results AgentNew and error %v; want 1 agent and 1 result AgentNew",
			len(agents), news, err,
		)
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
		t.Error("an agent whose last heartbeat is 76 seconds old: got it alive, want it down")
	}
	fx = fx.withNetwork("10.0.0.0/24")
	if p := fx.createPort(""); len(p.Blocks) != 0 {
		t.Errorf("create a port while the only DHCP agent is down: got blocks %v, want none",
			blockNames(p.Blocks))
	}
	if r := fx.heartbeat(network.DHCPAgent, net1); r != network.AgentRevived {
		t.Errorf("heartbeat of a down agent: got result %s, want AgentRevived", r)
	}
	if p := fx.createPort(""); len(p.Blocks) != 1 {
		t.Errorf("create a port after the DHCP agent has revived: got blocks %v, want one",
			blockNames(p.Blocks))
	}
}

func TestAgent_ConcurrentHeartbeatsDoNotExceedTheAgentsOfAHost(t *testing.T) {
	t.Parallel()
	fx := fixture{Store: storetest.New(t), t: t}
	const reported = 3 * network.MaxAgentsOfHost
	errs := make([]error, reported)
	runConcurrently(reported, func(i int) {
		_, errs[i] = fx.Network.ReportState(t.Context(), network.AgentState{
			Type:           fmt.Sprint("type ", i),
			Host:           cmp1,
			Configurations: json.RawMessage(`{}`),
		})
	})
	refused := 0
	for _, err := range errs {
		var fault *network.Fault
		if errors.As(err, &fault) && fault.Kind == network.QuotaExceeded {
			refused++
		} else if err != nil {
			t.Errorf("heartbeat of a new agent: got error %v, want none or a fault of the kind OverQuota", err)
		}
	}
	if agents, err := fx.Network.Agents(t.Context(), db.Listing{}); err != nil ||
		len(agents) != network.MaxAgentsOfHost ||
		refused != reported-network.MaxAgentsOfHost {
		t.Errorf(
			"agents of a host that reports %d types at once: got %d agents, %d refused and error %v, want %d agents",
			reported, len(agents), refused, err, network.MaxAgentsOfHost,
		)
	}
	if r := fx.heartbeat(network.OVSAgent, net1); r != network.AgentNew {
		t.Errorf("first agent of another host: got result %s, want AgentNew", r)
	}
}

// A controller cannot stop the synchronization of its hosts with one host that exceeds a limit.
func TestPseudoAgents_HostBeyondALimitIsSkipped(t *testing.T) {
	t.Parallel()
	fx := fixture{Store: storetest.New(t), t: t}
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", network.MaxConfigurations) + `"}`)
	hosts := []network.AgentState{
		{
			Type:           "ODL L2",
			Host:           cmp1,
			Binary:         network.ODLAgentBinary,
			Configurations: large,
		},
		{
			Type:           "ODL L2",
			Host:           net1,
			Binary:         network.ODLAgentBinary,
			Configurations: json.RawMessage(`{}`),
		},
	}
	if err := fx.Network.SyncPseudoAgents(t.Context(), hosts, time.Hour); err != nil {
		t.Fatal(err)
	}
	if agents, err := fx.Network.Agents(t.Context(), db.Listing{}); err != nil || len(agents) != 1 ||
		agents[0].Host != net1 {
		t.Errorf("pseudo agents: got %+v and error %v, want only the one with small configurations",
			agents, err)
	}
}
