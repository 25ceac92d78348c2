package portstore_test

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
		t.Errorf(
			"create a port on a host whose agent is down: got %+v, want a failed binding and a reason that says so",
			p,
		)
	}
	if n := strings.Count(fx.updateStatus(waiting.ID).Sentence(), "last heard of at"); n != 2 {
		t.Errorf("sentence of a port that waits for two down agents: got %q, want the last heartbeat of both",
			fx.updateStatus(waiting.ID).Sentence())
	}
	if r := fx.heartbeat(network.OVSAgent, cmp1); r != network.AgentRevived {
		t.Errorf("heartbeat of a down agent: got result %s, want AgentRevived", r)
	}
	if after := fx.readPort(p.ID); after.VIF != network.VIFOVS {
		t.Errorf("port with a failed binding after its agent has revived: got %+v, want VIF type ovs", after)
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
			t.Errorf(
				"set admin_state_up of the DHCP agent to %t: got the sentence %q, want it to mention a disabled agent only for false",
				up,
				s.Sentence(),
			)
		}
		ofPort := func(n contract.Note) bool { return n.ID == contract.PortID(waiting.ID.String()) }
		if notes := storetest.ClaimNotes(t, fx.Store); !slices.ContainsFunc(notes, ofPort) {
			t.Errorf(
				"set admin_state_up of the DHCP agent to %t: got the notes %+v, want one for the waiting port",
				up, notes,
			)
		}
	}
	if err := fx.Network.DeleteAgent(t.Context(), fx.agentOfType(network.OVSAgent).ID); err != nil {
		t.Fatal(err)
	}
	// a NIC switch agent belongs to another mechanism and cannot wire this port
	fx.heartbeat(network.NICSwitchAgent, cmp1)
	if s := fx.updateStatus(waiting.ID); !strings.Contains(s.Sentence(), "L2 on cmp-1 since") ||
		!strings.Contains(s.Sentence(), "no agent that can report is registered") {
		t.Errorf(
			"delete the agent of a port that waits for L2: got the sentence %q, want L2 on cmp-1 without a registered agent",
			s.Sentence(),
		)
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
		if at.Sentence() != seen.Sentence() || !strings.HasPrefix(at.Sentence(), network.Active+want) ||
			want == "" && at.Sentence() != network.Active ||
			at.Reason != "" {
			t.Errorf(
				"sentence of an active port: Port returns %q and UpdatePortStatus leads to %q; want both to be ACTIVE followed by %q",
				at.Sentence(), seen.Sentence(), want,
			)
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
		t.Errorf(
			"blocks of a port whose reporting DHCP agent is down: got %+v, want one that names host net-1 and the last heartbeat",
			b,
		)
	}
}
