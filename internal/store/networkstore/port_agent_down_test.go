package networkstore_test

import (
	"slices"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestPort_DownAgentIsNamedAndNotBoundTo(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.heartbeat(network.DHCPAgent, net1)
	fx = fx.withNetwork("10.0.0.0/24")
	waiting := fx.createPort(cmp1)
	storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)

	p := fx.createPort(cmp1)
	if p.VIF != network.VIFFailed || !strings.Contains(p.Reason(), "no live "+network.OVSAgent) {
		t.Errorf("created on a host whose agent is down: %+v", p)
	}
	if n := strings.Count(fx.updateStatus(waiting.ID).Sentence(), "last heard of at"); n != 2 {
		t.Errorf("%s", fx.updateStatus(waiting.ID).Sentence())
	}
	if r := fx.heartbeat(network.OVSAgent, cmp1); r != network.AgentRevived {
		t.Errorf("heartbeat result %s", r)
	}
	if after := fx.readPort(p.ID); after.VIF != network.VIFOVS {
		t.Errorf("after the agent revived: %+v", after)
	}
	for _, up := range []bool{false, true, false} {
		for notes := storetest.ClaimNotes(t, fx.Store); len(notes) > 0; notes = storetest.ClaimNotes(t, fx.Store) {
			if err := fx.Outbox.Settle(t.Context(), "", notes); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fx.Network.UpdateAgent(t.Context(), fx.agentOfType(network.DHCPAgent).ID, network.AgentChange{AdminUp: &up}); err != nil {
			t.Fatal(err)
		}
		if s := fx.updateStatus(waiting.ID); strings.Contains(s.Sentence(), "whose agent is disabled") == up {
			t.Errorf("enabled %t: %s", up, s.Sentence())
		}
		if notes := storetest.ClaimNotes(t, fx.Store); !slices.ContainsFunc(notes, func(n contract.Note) bool { return n.ID == contract.PortID(waiting.ID.String()) }) {
			t.Errorf("enabled %t: the port's workflow is not nudged: %+v", up, notes)
		}
	}
	if err := fx.Network.DeleteAgent(t.Context(), fx.agentOfType(network.OVSAgent).ID); err != nil {
		t.Fatal(err)
	}
	fx.heartbeat(network.NICSwitchAgent, cmp1) // of another mechanism: it cannot wire this port
	if s := fx.updateStatus(waiting.ID); !strings.Contains(s.Sentence(), "L2 on cmp-1 since") || !strings.Contains(s.Sentence(), "no agent that can report is registered") {
		t.Errorf("%s", s.Sentence())
	}
}

func TestPort_ActiveWarnsOfDownAgent(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.heartbeat(network.OVSAgent, cmp1)
	fx = fx.withNetwork("10.0.0.0/24")
	p, card := fx.createPort(cmp1), fx.createPort(cmp1, withVNIC("direct-physical"))
	fx.updateStatus(p.ID, l2OnCmp1)
	says := func(p network.Port, want string) {
		t.Helper()
		at, seen := fx.readPort(p.ID).StatusView(), fx.updateStatus(p.ID)
		if at.Sentence() != seen.Sentence() || !strings.HasPrefix(at.Sentence(), network.Active+want) || want == "" && at.Sentence() != network.Active || at.Reason != "" {
			t.Errorf("%q and %q, want %q", at.Sentence(), seen.Sentence(), want)
		}
	}
	says(p, "")

	expireHeartbeats()
	fx.heartbeat(network.NICSwitchAgent, cmp1)
	says(p, ": its agent on cmp-1 was last heard of at ")
	says(card, "")

	fx.heartbeat(network.OVSAgent, cmp1)
	says(p, "")

	if err := fx.Network.DeleteAgent(t.Context(), fx.agentOfType(network.OVSAgent).ID); err != nil {
		t.Fatal(err)
	}
	says(p, ": the agent on cmp-1 is no longer registered, so the status may be out of date")
}

func TestPort_DownDHCPAgentIsNamed(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.dhcpHeartbeat(net1, `{}`)
	fx = fx.withNetwork("10.0.0.0/24")
	fx.dhcpHeartbeat("net-2", `{"notifies_port_ready": false}`)
	if err := fx.Network.ScheduleNetwork(t.Context(), fx.dhcpAgentID("net-2"), fx.network.ID); err != nil {
		t.Fatal(err)
	}
	p := fx.createPort("")
	expireHeartbeats()
	fx.dhcpHeartbeat("net-2", `{"notifies_port_ready": false}`)

	b := fx.readPort(p.ID).Blocks
	if len(b) != 1 || b[0].SilentSince == nil || !slices.Equal(b[0].AgentHosts, []string{net1}) {
		t.Errorf("%+v", b)
	}
}
