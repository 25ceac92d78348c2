package portstore_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// bindScenarios are the test cases about bindings, agents and trunks. The key of a test case contains the
// number of the case (for example C14) and the required outcome. The function `expireHeartbeats` makes every
// agent count as down.
var bindScenarios = map[string]func(fx fixture, expireHeartbeats func()){
	"C14 an unbound port counts reports and does not change": func(fx fixture, _ func()) {
		p := fx.createPort("", withDeviceOwner("network:dhcp"))
		if s := fx.updateStatus(p.ID, l2OnCmp1, dhcpReady); s.IgnoredReports != 2 {
			fx.t.Errorf("reports to an unbound port: got %+v, want 2 ignored reports", s)
		}
		fx.checkPort("unbound", p, network.Down)
	},
	"C32 without an agent on the host binding fails and reports are ignored": func(fx fixture, _ func()) {
		p := fx.createPort("cmp-9")
		if p.VIF != network.VIFFailed {
			fx.t.Errorf("create a port that no agent can wire: got VIF type %s, want binding_failed", p.VIF)
		}
		fx.updateStatus(p.ID, dhcpReady, network.Report{Entity: network.L2, Host: "cmp-9"})
		fx.checkPort("after all reports", p, network.Down)
	},
	"C33 a VNIC type that no agent wires adds no L2 block": func(fx fixture, _ func()) {
		p := fx.createPort(cmp1, withVNIC("direct"))
		if p.VIF != network.VIFFailed {
			fx.t.Errorf("create a port that no agent can wire: got VIF type %s, want binding_failed", p.VIF)
		}
		fx.checkPort("created with a VNIC type that no agent wires", p, network.Down, "DHCP@")
	},
	"C35 a new host or binding profile sets DOWN in the same write": func(fx fixture, _ func()) {
		for _, c := range []network.PortChange{{Host: ptr(cmp2)}, {Profile: []byte(`{"a":"b"}`)}} {
			p := fx.createPort(cmp1)
			fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
			if after := fx.updatePort(p.ID, c); after.Status != network.Down || len(after.Blocks) != 1 {
				fx.t.Errorf(
					"update a port with %+v: got status %s and blocks %v, want DOWN and one block",
					c, after.Status, after.Blocks,
				)
			}
		}
	},
	"C36 a revived agent retries failed bindings": func(fx fixture, expireHeartbeats func()) {
		expireHeartbeats()
		p := fx.createPort(cmp1)
		fx.heartbeat(network.OVSAgent, cmp2)
		fx.heartbeat(network.DHCPAgent, cmp1)
		fx.checkPort("after heartbeats of other agents", p, network.Down, "DHCP@")
		if r := fx.heartbeat(network.OVSAgent, cmp1); r != network.AgentRevived {
			fx.t.Errorf("heartbeat of a down agent: got result %s, want AgentRevived", r)
		}
		fx.checkPort("after the agent has revived", p, network.Down, "DHCP@", "L2@cmp-1")
	},
	"C36 a disabled agent binds no port until it is enabled": func(fx fixture, expireHeartbeats func()) {
		expireHeartbeats()
		p := fx.createPort(cmp2)
		fx.disableAgent(network.OVSAgent, cmp2)
		fx.heartbeat(network.OVSAgent, cmp2)
		if after := fx.readPort(p.ID); after.VIF != network.VIFFailed {
			fx.t.Errorf("heartbeat of a disabled agent: got VIF type %s, want binding_failed", after.VIF)
		}
		if _, err := fx.Network.UpdateAgent(fx.t.Context(), fx.dhcpAgentID(cmp2), network.AgentChange{AdminUp: ptr(true)}); err != nil {
			fx.t.Fatal(err)
		}
		if after := fx.readPort(p.ID); after.VIF != network.VIFOVS {
			fx.t.Errorf("enable the agent: got VIF type %s, want ovs", after.VIF)
		}
	},
	"C37 concurrent bindings leave one binding": func(fx fixture, _ func()) {
		p := fx.createPort("")
		hosts := []string{cmp1, cmp2}
		runConcurrently(4, func(i int) { fx.updatePort(p.ID, network.PortChange{Host: &hosts[i%2]}) })
		after := fx.readPort(p.ID)
		if d := cmp.Diff([]string{"DHCP@", "L2@" + after.Host}, blockNames(after.Blocks)); d != "" {
			fx.t.Error(d)
		}
	},
	"C38 a delete during a binding leaves no block": func(fx fixture, _ func()) {
		p := fx.createPort("")
		runConcurrently(2, func(i int) {
			if i == 0 {
				_, _ = fx.Network.UpdatePort(fx.t.Context(), p.ID, network.PortChange{Host: ptr(cmp1)}, nil)
			} else if err := fx.Network.DeletePort(fx.t.Context(), p.ID, nil); err != nil {
				fx.t.Error(err)
			}
		})
		if blocked, err := fx.Network.Blocked(fx.t.Context(), portstore.Object{Type: "port", ID: p.ID}); blocked ||
			err != nil {
			fx.t.Errorf("blocks of a deleted port: got some or error %v, want none", err)
		}
	},
	"C39 after the move late reports of the source are ignored": func(fx fixture, _ func()) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		fx.createBinding(p, cmp2)
		if _, err := fx.Network.ActivateBinding(fx.t.Context(), p.ID, cmp2); err != nil {
			fx.t.Fatal(err)
		}
		fx.checkPort("after the move", p, network.Down, "L2@cmp-2")
		fx.updateStatus(p.ID, l2LostOn(cmp1), l2OnCmp1)
		fx.checkPort("after late reports of the source", p, network.Down, "L2@cmp-2")
		fx.updateStatus(p.ID, l2OnCmp2)
		fx.checkPort("wired", p, network.Active)
		if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs", "cmp-1 INACTIVE unbound"}, bindingSummaries(fx.readPort(p.ID))); d != "" {
			fx.t.Error(d)
		}
	},
	"C40 invalid activations are refused": func(fx fixture, _ func()) {
		p, other := fx.createPort(cmp1), fx.createPort(cmp1, withDeviceOwner("baremetal:none"))
		for _, tc := range []struct {
			port network.Port
			host string
			want network.Kind
		}{{p, cmp1, network.BindingActive}, {p, cmp2, network.BindingNotFound}, {other, cmp2, network.BadRequest}} {
			_, err := fx.Network.ActivateBinding(fx.t.Context(), tc.port.ID, tc.host)
			if faultKind(err) != tc.want {
				fx.t.Errorf("activate an invalid binding on host %s: got error %v, want %s",
					tc.host, err, tc.want)
			}
		}
		fx.createBinding(p, cmp2)
		var won, lost atomic.Int32
		runConcurrently(2, func(int) {
			switch _, err := fx.Network.ActivateBinding(fx.t.Context(), p.ID, cmp2); {
			case err == nil:
				won.Add(1)
			case faultKind(err) == network.BindingActive:
				lost.Add(1)
			}
		})
		if won.Load() != 1 || lost.Load() != 1 {
			fx.t.Errorf(
				"two concurrent activations of one binding: %d succeeded and %d were refused, want one of each",
				won.Load(),
				lost.Load(),
			)
		}
	},
	"C44 C46 wiring at the destination sends a Nova event and keeps the status": func(fx fixture, _ func()) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		fx.createBinding(p, cmp2)
		fx.deliverEvents(p.ID)
		s := fx.updateStatus(p.ID, l2OnCmp2)
		if d := cmp.Diff([]string{network.NovaVIFPlugged}, eventNames(s)); d != "" {
			fx.t.Error(d)
		}
		fx.checkPort("wired at the destination", p, network.Active)
		if s = fx.updateStatus(p.ID, network.Report{Entity: network.L2, Host: "cmp-9"}); len(s.Events) != 1 ||
			s.Accepted[0] {
			fx.t.Errorf(
				"report of a host without a binding: got %+v, want it ignored and the earlier Nova event",
				s,
			)
		}
	},
	"C45 C47 C49 a delete during reports leaves no block and no error": func(fx fixture, _ func()) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		runConcurrently(3, func(i int) {
			switch i {
			case 0:
				if err := fx.Network.DeletePort(fx.t.Context(), p.ID, nil); err != nil {
					fx.t.Error(err)
				}
			default:
				if _, err := fx.Network.ReportPort(fx.t.Context(), p.ID, []network.Report{l2LostOn(cmp1), l2OnCmp1}); err != nil &&
					!errors.Is(err, db.ErrNotFound) {
					fx.t.Error(err)
				}
			}
		})
		if blocked, err := fx.Network.Blocked(fx.t.Context(), portstore.Object{Type: "port", ID: p.ID}); blocked ||
			err != nil {
			fx.t.Errorf("blocks of a deleted port: got some or error %v, want none", err)
		}
	},
	"C54 C61 a full resync of an agent changes only waiting ports on its host": func(fx fixture, _ func()) {
		up, waiting, elsewhere := fx.createPort(cmp1), fx.createPort(cmp1), fx.createPort(cmp2)
		fx.updateStatus(up.ID, l2OnCmp1, dhcpReady)
		fx.updateStatus(waiting.ID, dhcpReady)
		before := fx.readPort(up.ID).Revision
		for range 2 {
			for _, p := range []network.Port{up, waiting, elsewhere} {
				fx.updateStatus(p.ID, l2OnCmp1)
			}
		}
		fx.checkPort("wired already", up, network.Active)
		fx.checkPort("wired by the resync", waiting, network.Active)
		fx.checkPort("on another host", elsewhere, network.Down, "DHCP@", "L2@cmp-2")
		if after := fx.readPort(up.ID).Revision; after != before {
			fx.t.Errorf("repeat the reports of a wired port: got revision %d, want still %d", after, before)
		}
	},
	"C58 unplugged and plugged again sends both Nova events": func(fx fixture, _ func()) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		fx.deliverEvents(p.ID)
		fx.updateStatus(p.ID, l2LostOn(cmp1))
		s := fx.updateStatus(p.ID, l2OnCmp1)
		if d := cmp.Diff([]string{network.NovaVIFUnplugged, network.NovaVIFPlugged}, eventNames(s)); d != "" {
			fx.t.Error(d)
		}
	},
	"C59 wiring that the agent gives up sets DOWN, not BUILD": func(fx fixture, _ func()) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, reportFromCmp1(network.L2, network.ReportBegun, 0))
		fx.checkPort("after the agent began to wire the port", p, network.Build, "DHCP@", "L2@cmp-1")
		fx.updateStatus(p.ID, l2LostOn(cmp1))
		fx.checkPort("unplugged", p, network.Down, "DHCP@", "L2@cmp-1")
	},
	"C63 a distributed port ignores a host that did not begin wiring": func(fx fixture, _ func()) {
		p := fx.createPort("", withDeviceOwner("network:router_interface_distributed"))
		if s := fx.updateStatus(p.ID, l2OnCmp1); s.Accepted[0] || s.Status != network.Down {
			fx.t.Errorf(
				"report of a host that did not begin wiring: got %+v, want DOWN and the report ignored",
				s,
			)
		}
	},
	"C65 C66 a trunk's status follows its ports, also during live migration": func(fx fixture, _ func()) {
		parent, sub, late := fx.createPort(""), fx.createUnownedPort(), fx.createUnownedPort()
		id := fx.createTrunk(parent, sub).ID
		trunk := func(when, status string) {
			fx.t.Helper()
			if got := fx.trunkStatus(id); got != status {
				fx.t.Errorf("trunk at the step %q: got status %s, want %s", when, got, status)
			}
		}
		wire := func(host string, ports ...network.Port) {
			for _, p := range ports {
				fx.updateStatus(p.ID, network.Report{Entity: network.L2, Host: host}, dhcpReady)
			}
		}
		trunk("unbound", network.Down)
		fx.updatePort(parent.ID, network.PortChange{Host: ptr(cmp1)})
		fx.updateStatus(sub.ID, reportFromCmp1(network.L2, network.ReportBegun, 0))
		trunk("the agent begins to wire a subport", network.Build)
		wire(cmp1, parent, sub)
		trunk("wired", network.Active)
		if _, err := fx.Network.AddSubports(fx.t.Context(), id, []network.Subport{{Port: late.ID, Type: network.VLAN, Segment: 8}}); err != nil {
			fx.t.Fatal(err)
		}
		trunk("after another subport was added", network.Down)
		wire(cmp1, late)
		fx.updatePort(parent.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
		fx.checkPort("the subport is bound to the destination first", sub, network.Down, "L2@cmp-2")
		fx.updatePort(parent.ID, network.PortChange{Host: ptr("cmp-9"), Profile: []byte(`{}`)})
		trunk("bound to a host without an agent", network.Down)
		fx.updatePort(parent.ID, network.PortChange{Host: ptr("")})
		trunk("unbound again", network.Down)
	},
	"C73 a direct-physical port is active when it is bound": func(fx fixture, _ func()) {
		fx.checkPort("bound to a host", fx.createPort(cmp1, withVNIC("direct-physical")), network.Active)
	},
}

func TestBinding_Scenarios(t *testing.T) {
	t.Parallel()
	for name, scenario := range bindScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			fx := fixture{Store: storetest.Open(t, url), t: t}
			fx.heartbeat(network.OVSAgent, cmp1)
			fx.heartbeat(network.OVSAgent, cmp2)
			fx.heartbeat(network.DHCPAgent, net1)
			scenario(fx.withNetwork("10.0.0.0/24"), func() {
				storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)
			})
		})
	}
}
