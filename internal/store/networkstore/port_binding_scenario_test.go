package networkstore_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// bindScenarios are the rows of the contract's table about bindings, agents and trunks, by their numbers, with the outcome that is
// wished for. silence lets every agent fall silent.
var bindScenarios = map[string]func(g ground, silence func()){
	"C14 nothing to bind: reports are counted and change nothing": func(g ground, _ func()) {
		p := g.port("", owner("network:dhcp"))
		if s := g.settle(p.ID, l2on1, dhcpOK); s.IgnoredReports != 2 {
			g.t.Errorf("%+v", s)
		}
		g.is("unbound", p, network.Down)
	},
	"C32 no agent on the host: it is not bound, and no ghost wires it": func(g ground, _ func()) {
		p := g.port("cmp-9")
		if p.VIF != network.VIFFailed {
			g.t.Errorf("%s", p.VIF)
		}
		g.settle(p.ID, dhcpOK, network.Report{Entity: network.L2, Host: "cmp-9"})
		g.is("reported", p, network.Down)
	},
	"C33 an interface that nobody there can wire is not waited for": func(g ground, _ func()) {
		p := g.port(cmp1, vnic("direct"))
		if p.VIF != network.VIFFailed {
			g.t.Errorf("%s", p.VIF)
		}
		g.is("created", p, network.Down, "DHCP@")
	},
	"C35 another host or another interface: down in the same write": func(g ground, _ func()) {
		for _, c := range []network.PortChange{{Host: ptr(cmp2)}, {Profile: []byte(`{"a":"b"}`)}} {
			p := g.port(cmp1)
			g.settle(p.ID, l2on1, dhcpOK)
			if after := g.update(p.ID, c); after.Status != network.Down || len(after.Blocks) != 1 {
				g.t.Errorf("%+v: %s, %v", c, after.Status, after.Blocks)
			}
		}
	},
	"C36 a revived agent binds what could not be bound": func(g ground, silence func()) {
		silence()
		p := g.port(cmp1)
		g.heartbeat(network.OVSAgent, cmp2)
		g.heartbeat(network.DHCPAgent, cmp1)
		g.is("others live", p, network.Down, "DHCP@")
		if r := g.heartbeat(network.OVSAgent, cmp1); r != network.AgentRevived {
			g.t.Errorf("the agent is %s", r)
		}
		g.is("revived", p, network.Down, "DHCP@", "L2@cmp-1")
	},
	"C36 a disabled agent binds nothing until it is enabled": func(g ground, silence func()) {
		silence()
		p := g.port(cmp2)
		g.disable(network.OVSAgent, cmp2)
		g.heartbeat(network.OVSAgent, cmp2)
		if after := g.look(p.ID); after.VIF != network.VIFFailed {
			g.t.Errorf("a disabled agent: %s", after.VIF)
		}
		if _, err := g.Network.UpdateAgent(g.t.Context(), g.dhcp(cmp2), network.AgentChange{AdminUp: ptr(true)}); err != nil {
			g.t.Fatal(err)
		}
		if after := g.look(p.ID); after.VIF != network.VIFOVS {
			g.t.Errorf("enabled: %s", after.VIF)
		}
	},
	"C37 of two who bind, both see one binding": func(g ground, _ func()) {
		p := g.port("")
		hosts := []string{cmp1, cmp2}
		together(4, func(i int) { g.update(p.ID, network.PortChange{Host: &hosts[i%2]}) })
		after := g.look(p.ID)
		if d := cmp.Diff([]string{"DHCP@", "L2@" + after.Host}, entities(after.Blocks)); d != "" {
			g.t.Error(d)
		}
	},
	"C38 a delete that meets a binding leaves nothing": func(g ground, _ func()) {
		p := g.port("")
		together(2, func(i int) {
			if i == 0 {
				_, _ = g.Network.UpdatePort(g.t.Context(), p.ID, network.PortChange{Host: ptr(cmp1)}, nil)
			} else if err := g.Network.DeletePort(g.t.Context(), p.ID, nil); err != nil {
				g.t.Error(err)
			}
		})
		if blocked, err := g.Network.Blocked(g.t.Context(), networkstore.Object{Type: "port", ID: p.ID}); blocked || err != nil {
			g.t.Errorf("still blocked, %v", err)
		}
	},
	"C39 moved: late words of the source are nobody's": func(g ground, _ func()) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK)
		g.propose(p, cmp2)
		if _, err := g.Network.ActivateBinding(g.t.Context(), p.ID, cmp2); err != nil {
			g.t.Fatal(err)
		}
		g.is("moved", p, network.Down, "L2@cmp-2")
		g.settle(p.ID, lost(cmp1), l2on1)
		g.is("late", p, network.Down, "L2@cmp-2")
		g.settle(p.ID, l2on2)
		g.is("wired", p, network.Active)
		if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs", "cmp-1 INACTIVE unbound"}, tied(g.look(p.ID))); d != "" {
			g.t.Error(d)
		}
	},
	"C40 refused activations": func(g ground, _ func()) {
		p, other := g.port(cmp1), g.port(cmp1, owner("baremetal:none"))
		for _, tc := range []struct {
			port network.Port
			host string
			want network.Kind
		}{{p, cmp1, network.BindingActive}, {p, cmp2, network.BindingNotFound}, {other, cmp2, network.BadRequest}} {
			if _, err := g.Network.ActivateBinding(g.t.Context(), tc.port.ID, tc.host); kind(err) != tc.want {
				g.t.Errorf("%s: %v", tc.host, err)
			}
		}
		g.propose(p, cmp2)
		var won, lost atomic.Int32
		together(2, func(int) {
			switch _, err := g.Network.ActivateBinding(g.t.Context(), p.ID, cmp2); {
			case err == nil:
				won.Add(1)
			case kind(err) == network.BindingActive:
				lost.Add(1)
			}
		})
		if won.Load() != 1 || lost.Load() != 1 {
			g.t.Errorf("%d moved it, %d were refused", won.Load(), lost.Load())
		}
	},
	"C44 C46 wired where it may go: Nova is told, the port stays": func(g ground, _ func()) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK)
		g.propose(p, cmp2)
		s := g.settle(p.ID, l2on2)
		if d := cmp.Diff([]string{network.NovaVIFPlugged, network.NovaVIFPlugged}, events(s)); d != "" {
			g.t.Error(d)
		}
		g.is("wired there", p, network.Active)
		if s = g.settle(p.ID, network.Report{Entity: network.L2, Host: "cmp-9"}); len(s.Events) != 2 || s.Accepted[0] {
			g.t.Errorf("a host that it has nothing to do with: %+v", s)
		}
	},
	"C45 C47 C49 a delete that meets reports leaves nothing, and the reports do no harm": func(g ground, _ func()) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK)
		together(3, func(i int) {
			switch i {
			case 0:
				if err := g.Network.DeletePort(g.t.Context(), p.ID, nil); err != nil {
					g.t.Error(err)
				}
			default:
				if _, err := g.Network.ReportPort(g.t.Context(), p.ID, []network.Report{lost(cmp1), l2on1}); err != nil && !errors.Is(err, db.ErrNotFound) {
					g.t.Error(err)
				}
			}
		})
		if blocked, err := g.Network.Blocked(g.t.Context(), networkstore.Object{Type: "port", ID: p.ID}); blocked || err != nil {
			g.t.Errorf("still blocked, %v", err)
		}
	},
	"C54 C61 an agent that tells all it has changes nothing of what is true": func(g ground, _ func()) {
		up, waiting, elsewhere := g.port(cmp1), g.port(cmp1), g.port(cmp2)
		g.settle(up.ID, l2on1, dhcpOK)
		g.settle(waiting.ID, dhcpOK)
		before := g.look(up.ID).Revision
		for range 2 {
			for _, p := range []network.Port{up, waiting, elsewhere} {
				g.settle(p.ID, l2on1)
			}
		}
		g.is("wired already", up, network.Active)
		g.is("wired meanwhile", waiting, network.Active)
		g.is("of another host", elsewhere, network.Down, "DHCP@", "L2@cmp-2")
		if after := g.look(up.ID).Revision; after != before {
			g.t.Errorf("revision %d after %d", after, before)
		}
	},
	"C58 unplugged and plugged between two looks: Nova hears both": func(g ground, _ func()) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK)
		g.settle(p.ID, lost(cmp1))
		s := g.settle(p.ID, l2on1)
		if d := cmp.Diff([]string{network.NovaVIFPlugged, network.NovaVIFUnplugged, network.NovaVIFPlugged}, events(s)); d != "" {
			g.t.Error(d)
		}
	},
	"C59 given up by its agent: DOWN, not BUILD for ever": func(g ground, _ func()) {
		p := g.port(cmp1)
		g.settle(p.ID, at1(network.L2, network.ReportBegun, 0))
		g.is("begun", p, network.Build, "DHCP@", "L2@cmp-1")
		g.settle(p.ID, lost(cmp1))
		g.is("given up", p, network.Down, "DHCP@", "L2@cmp-1")
	},
	"C63 a distributed port is not wired by a host that did not ask": func(g ground, _ func()) {
		p := g.port("", owner("network:router_interface_distributed"))
		if s := g.settle(p.ID, l2on1); s.Accepted[0] || s.Status != network.Down {
			g.t.Errorf("%+v", s)
		}
	},
	"C65 C66 a trunk is what its ports are, also while its server moves": func(g ground, _ func()) {
		parent, sub, late := g.port(""), g.bare(), g.bare()
		id := g.trunk(parent, sub).ID
		trunk := func(when, status string) {
			g.t.Helper()
			if got := g.status(id); got != status {
				g.t.Errorf("%s: %s, want %s", when, got, status)
			}
		}
		wire := func(host string, ports ...network.Port) {
			for _, p := range ports {
				g.settle(p.ID, network.Report{Entity: network.L2, Host: host}, dhcpOK)
			}
		}
		trunk("unbound", network.Down)
		g.update(parent.ID, network.PortChange{Host: ptr(cmp1)})
		g.settle(sub.ID, at1(network.L2, network.ReportBegun, 0))
		trunk("its subport is taken up", network.Build)
		wire(cmp1, parent, sub)
		trunk("wired", network.Active)
		if _, err := g.Network.AddSubports(g.t.Context(), id, []network.Subport{{Port: late.ID, Type: network.VLAN, Segment: 8}}); err != nil {
			g.t.Fatal(err)
		}
		trunk("another subport", network.Down)
		wire(cmp1, late)
		g.update(parent.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
		g.is("its subport goes ahead", sub, network.Down, "L2@cmp-2")
		g.update(parent.ID, network.PortChange{Host: ptr("cmp-9"), Profile: []byte(`{}`)})
		trunk("nobody there can wire it", network.Down)
		g.update(parent.ID, network.PortChange{Host: ptr("")})
		trunk("unbound again", network.Down)
	},
	"C73 a whole card is active at once": func(g ground, _ func()) {
		g.is("bound", g.port(cmp1, vnic("direct-physical")), network.Active)
	},
}

// disable has an operator disable the agent of that type on that host.
func (g ground) disable(kind, host string) {
	g.t.Helper()
	agents, err := g.Network.Agents(g.t.Context(), db.Listing{Where: []db.Condition{{Field: "host", In: []string{host}}, {Field: "type", In: []string{kind}}}})
	if err != nil || len(agents) != 1 {
		g.t.Fatalf("%d agents on %s: %v", len(agents), host, err)
	}
	if _, err := g.Network.UpdateAgent(g.t.Context(), agents[0].ID, network.AgentChange{AdminUp: ptr(false)}); err != nil {
		g.t.Fatal(err)
	}
}

func TestBinding_Scenarios(t *testing.T) {
	t.Parallel()
	for name, story := range bindScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			g := ground{Store: storetest.Open(t, url), t: t}
			g.heartbeat(network.OVSAgent, cmp1)
			g.heartbeat(network.OVSAgent, cmp2)
			g.heartbeat(network.DHCPAgent, net1)
			story(g.laid("10.0.0.0/24"), func() {
				storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)
			})
		})
	}
}
