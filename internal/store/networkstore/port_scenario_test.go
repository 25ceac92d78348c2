package networkstore_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// is checks a port's status and whom it waits for.
func (g ground) is(when string, p network.Port, status string, blocks ...string) {
	g.t.Helper()
	after := g.look(p.ID)
	if d := cmp.Diff(append([]string{}, blocks...), entities(after.Blocks)); d != "" || after.Status != status {
		g.t.Errorf("%s: %s, want %s, blocks %s", when, after.Status, status, d)
	}
}

// dhcpServed has the subnet have DHCP or not.
func (g ground) dhcpServed(yes bool) {
	g.t.Helper()
	if _, err := g.Network.UpdateSubnet(g.t.Context(), g.subnet.ID, network.SubnetChange{DHCP: &yes}, nil); err != nil {
		g.t.Fatal(err)
	}
}

func lost(host string) network.Report {
	return network.Report{Entity: network.L2, Host: host, Event: network.ReportLost}
}

func vnic(kind string) func(*network.PortChange) {
	return func(c *network.PortChange) { c.VNIC = &kind }
}

func adminDown(c *network.PortChange) { c.AdminUp = ptr(false) }

// blockScenarios are the rows of the contract's table about blocks and reports, by their numbers, with the outcome that is wished for.
var blockScenarios = map[string]func(g ground){
	"C10 bound without an owner, L2 is still asked for": func(g ground) {
		p := g.port(cmp1, owner(""))
		g.settle(p.ID, dhcpOK)
		g.is("DHCP is ready", p, network.Down, "L2@cmp-1")
		g.settle(p.ID, l2on1)
		g.is("wired", p, network.Active)
	},
	"C12 reports to a deleted port are harmless and leave nothing": func(g ground) {
		p := g.port(cmp1)
		if err := g.Network.DeletePort(g.t.Context(), p.ID, nil); err != nil {
			g.t.Fatal(err)
		}
		if s := g.settle(p.ID, dhcpOK, l2on1, lost(cmp1)); !s.Deleted {
			g.t.Errorf("%+v", s)
		}
		if blocked, err := g.Network.Blocked(g.t.Context(), networkstore.Object{Type: "port", ID: p.ID}); blocked || err != nil {
			g.t.Errorf("still blocked, %v", err)
		}
	},
	"C16 C17 C18 ready before the binding: it counts at once and nobody polls": func(g ground) {
		for _, owner_ := range []string{"compute:nova", "baremetal:none"} {
			p := g.port("", owner(owner_))
			g.settle(p.ID, dhcpOK)
			g.is("unbound", p, network.Down)
			g.update(p.ID, network.PortChange{Host: ptr(cmp1)})
			g.is("bound", p, network.Down, "L2@cmp-1")
			g.settle(p.ID, l2on1)
			g.is("wired", p, network.Active)
		}
	},
	"C19 C41 active exactly at the second report, duplicates change nothing": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1)
		g.is("one", p, network.Down, "DHCP@")
		g.settle(p.ID, dhcpOK)
		g.is("both", p, network.Active)
		before := g.look(p.ID).Revision
		g.settle(p.ID, l2on1, dhcpOK)
		if after := g.look(p.ID); after.Revision != before || after.IgnoredReports != 2 {
			g.t.Errorf("duplicates: revision %d after %d, %d ignored", after.Revision, before, after.IgnoredReports)
		}
	},
	"C20 unplugged: a DHCP agent that syncs makes it not active": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK, lost(cmp1), dhcpOK)
		g.is("after the sync", p, network.Down, "L2@cmp-1")
	},
	"C15 C22 administratively down: reports are remembered": func(g ground) {
		p := g.port(cmp1, adminDown)
		g.settle(p.ID, l2on1, dhcpOK)
		g.is("down", p, network.Down)
		g.update(p.ID, network.PortChange{AdminUp: ptr(true)})
		g.is("up", p, network.Active)
		g.update(p.ID, network.PortChange{AdminUp: ptr(false)})
		g.is("down again", p, network.Down)
		g.settle(p.ID, lost(cmp1)) // its agent takes it off the wire
		g.update(p.ID, network.PortChange{AdminUp: ptr(true)})
		g.is("up, and its agent has to wire it", p, network.Down, "L2@cmp-1")
		g.settle(p.ID, l2on1)
		g.is("wired", p, network.Active)
	},
	"C23 C24 DHCP is asked for where an agent serves an address": func(g ground) {
		g.is("served", g.port(cmp1), network.Down, "DHCP@", "L2@cmp-1")
		g.is("without addresses", g.port(cmp1, func(c *network.PortChange) { c.FixedIPs = &[]network.FixedIP{} }), network.Down, "L2@cmp-1")
		g.dhcpServed(false)
		g.is("no DHCP", g.port(cmp1), network.Down, "L2@cmp-1")
	},
	"C25 a new address is asked of DHCP again, a new host is not": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK)
		g.update(p.ID, network.PortChange{FixedIPs: &[]network.FixedIP{{Subnet: g.subnet.ID}, {Subnet: g.subnet.ID}}})
		g.is("another address", p, network.Down, "DHCP@") // active and blocked cannot be
		g.settle(p.ID, dhcpOK)
		g.is("served", p, network.Active)
		g.update(p.ID, network.PortChange{Host: ptr(cmp2)})
		g.is("another host", p, network.Down, "L2@cmp-2")
		g.update(p.ID, network.PortChange{Name: ptr("x")})
		g.is("another name", p, network.Down, "L2@cmp-2")
	},
	"C26 without a DHCP agent nobody waits for one": func(g ground) {
		if err := g.Network.DeleteAgent(g.t.Context(), g.agent(network.DHCPAgent).ID); err != nil {
			g.t.Fatal(err)
		}
		g.is("created", g.port(cmp1), network.Down, "L2@cmp-1")
	},
	"C27 a late report of the host before is nobody's": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, dhcpOK)
		g.update(p.ID, network.PortChange{Host: ptr("")})
		g.is("unbound", p, network.Down)
		g.update(p.ID, network.PortChange{Host: ptr(cmp2)})
		if s := g.settle(p.ID, l2on1); s.IgnoredReports != 1 || len(s.Events) != 1 || s.Events[0].Name != network.NovaNetworkChanged {
			g.t.Errorf("Nova is told of a port that is not there: %+v", s)
		}
		g.is("late", p, network.Down, "L2@cmp-2")
		g.settle(p.ID, l2on2)
		g.is("wired", p, network.Active)
	},
	"C28 no addresses any more: decided at once": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1)
		g.update(p.ID, network.PortChange{FixedIPs: &[]network.FixedIP{}})
		g.is("without addresses", p, network.Active)
	},
	"C29 C31 DHCP switched off frees, switched on asks new ports only": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1)
		g.dhcpServed(false)
		g.is("off", p, network.Active)
		waiting := g.port(cmp1)
		g.dhcpServed(true)
		g.is("on", waiting, network.Down, "L2@cmp-1")
		g.is("a new one", g.port(cmp1), network.Down, "DHCP@", "L2@cmp-1")
	},
	"C30 taken from its DHCP agent: another has to, or nobody": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1)
		first := g.agent(network.DHCPAgent).ID
		g.heartbeat(network.DHCPAgent, "net-2")
		if err := g.Network.UnscheduleNetwork(g.t.Context(), first, g.network.ID); err != nil {
			g.t.Fatal(err)
		}
		g.hostedBy("another", "net-2")
		g.settle(p.ID, dhcpOK)
		g.is("the agent before reports", p, network.Down, "DHCP@")
		if err := g.Network.DeleteAgent(g.t.Context(), g.dhcp("net-2")); err != nil {
			g.t.Fatal(err)
		}
		g.hostedBy("the first again", net1)
		if err := g.Network.DeleteAgent(g.t.Context(), first); err != nil {
			g.t.Fatal(err)
		}
		g.is("nobody is left", p, network.Active)
	},
	"C34 the report of an earlier binding to the same host comes last": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, dhcpOK)
		g.update(p.ID, network.PortChange{Host: ptr(cmp2)})
		g.update(p.ID, network.PortChange{Host: ptr(cmp1)})
		g.settle(p.ID, at1(network.L2, "", p.Revision))
		g.is("late", p, network.Down, "L2@cmp-1")
	},
	"C42 C43 who takes a port up makes it BUILD, on its own host only": func(g ground) {
		begun := func(host string) network.Report {
			return network.Report{Entity: network.L2, Host: host, Event: network.ReportBegun}
		}
		for status, before := range map[string][]network.Report{network.Down: nil, network.Build: {begun(cmp1)}, network.Active: {l2on1, dhcpOK}} {
			p := g.port(cmp1)
			g.settle(p.ID, before...)
			for _, stranger := range []string{cmp2, ""} {
				if s := g.settle(p.ID, begun(stranger)); s.Status != status || s.Accepted[0] {
					g.t.Errorf("begun on %q: %s, want %s", stranger, s.Status, status)
				}
			}
			if s := g.settle(p.ID, begun(cmp1)); s.Status != network.Build || s.Accepted[0] != (status != network.Build) {
				g.t.Errorf("%s: %+v", status, s)
			}
		}
		down := g.port(cmp1, adminDown)
		g.settle(down.ID, begun(cmp1))
		g.is("administratively down", down, network.Down, "DHCP@", "L2@cmp-1")
	},
	"C64 who says that its port is down has to say that it is up": func(g ground) {
		p := g.port(cmp1)
		g.settle(p.ID, l2on1, dhcpOK)
		s := g.settle(p.ID, lost(cmp1))
		if d := cmp.Diff([]string{network.NovaVIFPlugged, network.NovaVIFUnplugged}, events(s)); d != "" {
			g.t.Error(d)
		}
		g.is("down", p, network.Down, "L2@cmp-1")
	},
	"C74 moving, and active all the same when nobody listens to events": func(g ground) {
		p := g.port(cmp1, func(c *network.PortChange) {
			c.DeviceID, c.Profile = ptr("no-server"), json.RawMessage(`{"migrating_to":"cmp-2"}`)
		})
		s := g.settle(p.ID, dhcpOK, l2on1)
		if len(s.Events) != 0 {
			g.t.Errorf("%+v", s.Events)
		}
		g.is("wired", p, network.Active)
	},
}

func TestBlock_Scenarios(t *testing.T) {
	t.Parallel()
	for name, story := range blockScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(ready(t, "10.0.0.0/24"))
		})
	}
}
