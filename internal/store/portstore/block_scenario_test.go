package portstore_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/portstore"
)

// blockScenarios are the test cases about provisioning blocks and reports. The key of a test case contains
// the number of the case and the required outcome.
var blockScenarios = map[string]func(fx fixture){
	"C10 a bound port without a device owner waits for L2": func(fx fixture) {
		p := fx.createPort(cmp1, withDeviceOwner(""))
		fx.updateStatus(p.ID, dhcpReady)
		fx.checkPort("DHCP is ready", p, network.Down, "L2@cmp-1")
		fx.updateStatus(p.ID, l2OnCmp1)
		fx.checkPort("wired", p, network.Active)
	},
	"C12 reports on a deleted port leave no rows": func(fx fixture) {
		p := fx.createPort(cmp1)
		if err := fx.Network.DeletePort(fx.t.Context(), p.ID, nil); err != nil {
			fx.t.Fatal(err)
		}
		if s := fx.updateStatus(p.ID, dhcpReady, l2OnCmp1, l2LostOn(cmp1)); !s.Deleted {
			fx.t.Errorf("reports to a deleted port: got %+v, want it deleted", s)
		}
		if blocked, err := fx.Network.Blocked(fx.t.Context(), portstore.Object{Type: "port", ID: p.ID}); blocked ||
			err != nil {
			fx.t.Errorf("blocks of a deleted port: got some or error %v, want none", err)
		}
	},
	"C16 C17 C18 a DHCP report before the binding counts": func(fx fixture) {
		for _, owner := range []string{"compute:nova", "baremetal:none"} {
			p := fx.createPort("", withDeviceOwner(owner))
			fx.updateStatus(p.ID, dhcpReady)
			fx.checkPort("unbound", p, network.Down)
			fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp1)})
			fx.checkPort("bound", p, network.Down, "L2@cmp-1")
			fx.updateStatus(p.ID, l2OnCmp1)
			fx.checkPort("wired", p, network.Active)
		}
	},
	"C19 C41 active at the second report, duplicates are ignored": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1)
		fx.checkPort("after one of two reports", p, network.Down, "DHCP@")
		fx.updateStatus(p.ID, dhcpReady)
		fx.checkPort("after both reports", p, network.Active)
		before := fx.readPort(p.ID).Revision
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		if after := fx.readPort(p.ID); after.Revision != before || after.IgnoredReports != 2 {
			fx.t.Errorf(
				"repeat both reports: got revision %d, previously %d, and %d ignored reports; want no new revision and 2 ignored reports",
				after.Revision, before, after.IgnoredReports,
			)
		}
	},
	"C20 a DHCP report does not activate an unplugged port": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady, l2LostOn(cmp1), dhcpReady)
		fx.checkPort("after a DHCP report for an unplugged port", p, network.Down, "L2@cmp-1")
	},
	"C15 C22 reports during admin state down count after it is up": func(fx fixture) {
		p := fx.createPort(cmp1, withAdminDown)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		fx.checkPort("administratively down", p, network.Down)
		fx.updatePort(p.ID, network.PortChange{AdminUp: ptr(true)})
		fx.checkPort("administratively up", p, network.Active)
		fx.updatePort(p.ID, network.PortChange{AdminUp: ptr(false)})
		fx.checkPort("administratively down again", p, network.Down)
		fx.updateStatus(p.ID, l2LostOn(cmp1)) // the agent reports that the port is unplugged
		fx.updatePort(p.ID, network.PortChange{AdminUp: ptr(true)})
		fx.checkPort("administratively up again, not wired yet", p, network.Down, "L2@cmp-1")
		fx.updateStatus(p.ID, l2OnCmp1)
		fx.checkPort("wired", p, network.Active)
	},
	"C23 C24 only ports with a DHCP-served address wait for DHCP": func(fx fixture) {
		fx.checkPort("address in a subnet with DHCP", fx.createPort(cmp1), network.Down, "DHCP@", "L2@cmp-1")
		fx.checkPort(
			"without addresses",
			fx.createPort(cmp1, func(c *network.PortChange) { c.FixedIPs = &[]network.FixedIP{} }),
			network.Down,
			"L2@cmp-1",
		)
		fx.setSubnetDHCP(false)
		fx.checkPort("address in a subnet without DHCP", fx.createPort(cmp1), network.Down, "L2@cmp-1")
	},
	"C25 a new address adds a DHCP block, a new host does not": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		fx.updatePort(
			p.ID,
			network.PortChange{FixedIPs: &[]network.FixedIP{{Subnet: fx.subnet.ID}, {Subnet: fx.subnet.ID}}},
		)
		// a blocked port is never active
		fx.checkPort("after another address was added", p, network.Down, "DHCP@")
		fx.updateStatus(p.ID, dhcpReady)
		fx.checkPort("after the DHCP report for the new address", p, network.Active)
		fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)})
		fx.checkPort("after a move to another host", p, network.Down, "L2@cmp-2")
		fx.updatePort(p.ID, network.PortChange{Name: ptr("x")})
		fx.checkPort("after the port is renamed", p, network.Down, "L2@cmp-2")
	},
	"C26 without a DHCP agent ports get no DHCP block": func(fx fixture) {
		if err := fx.Network.DeleteAgent(fx.t.Context(), fx.agentOfType(network.DHCPAgent).ID); err != nil {
			fx.t.Fatal(err)
		}
		fx.checkPort("created without a DHCP agent", fx.createPort(cmp1), network.Down, "L2@cmp-1")
	},
	"C27 a late report of the previous host is ignored": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, dhcpReady)
		fx.updatePort(p.ID, network.PortChange{Host: ptr("")})
		fx.checkPort("unbound", p, network.Down)
		fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)})
		if s := fx.updateStatus(p.ID, l2OnCmp1); s.IgnoredReports != 1 || len(s.Events) != 1 ||
			s.Events[0].Name != network.NovaNetworkChanged {
			fx.t.Errorf(
				"late report of the previous host: got %+v, want it ignored and only the event network-changed",
				s,
			)
		}
		fx.checkPort("after the late report", p, network.Down, "L2@cmp-2")
		fx.updateStatus(p.ID, l2OnCmp2)
		fx.checkPort("wired", p, network.Active)
	},
	"C28 removing all addresses removes the DHCP block": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1)
		fx.updatePort(p.ID, network.PortChange{FixedIPs: &[]network.FixedIP{}})
		fx.checkPort("without addresses", p, network.Active)
	},
	"C29 C31 disabling DHCP removes DHCP blocks, enabling adds them to new ports only": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1)
		fx.setSubnetDHCP(false)
		fx.checkPort("after DHCP was disabled", p, network.Active)
		waiting := fx.createPort(cmp1)
		fx.setSubnetDHCP(true)
		fx.checkPort("created before DHCP was enabled again", waiting, network.Down, "L2@cmp-1")
		fx.checkPort("a new port", fx.createPort(cmp1), network.Down, "DHCP@", "L2@cmp-1")
	},
	"C30 unscheduling moves the network to another DHCP agent or removes the block": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1)
		first := fx.agentOfType(network.DHCPAgent).ID
		fx.heartbeat(network.DHCPAgent, "net-2")
		if err := fx.Network.UnscheduleNetwork(fx.t.Context(), first, fx.network.ID); err != nil {
			fx.t.Fatal(err)
		}
		fx.checkDHCPHosts("after the network is unscheduled from net-1", "net-2")
		fx.updateStatus(p.ID, dhcpReady)
		fx.checkPort("after a report of the previous agent", p, network.Down, "DHCP@")
		if err := fx.Network.DeleteAgent(fx.t.Context(), fx.dhcpAgentID("net-2")); err != nil {
			fx.t.Fatal(err)
		}
		fx.checkDHCPHosts("after the agent on net-2 is deleted", net1)
		if err := fx.Network.DeleteAgent(fx.t.Context(), first); err != nil {
			fx.t.Fatal(err)
		}
		fx.checkPort("all DHCP agents are deleted", p, network.Active)
	},
	"C34 a late report of an earlier binding to the same host is ignored": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, dhcpReady)
		fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)})
		fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp1)})
		fx.updateStatus(p.ID, reportFromCmp1(network.L2, "", p.Revision))
		fx.checkPort("after the late report", p, network.Down, "L2@cmp-1")
	},
	"C42 C43 only the agent on the port's host sets BUILD": func(fx fixture) {
		begun := func(host string) network.Report {
			return network.Report{Entity: network.L2, Host: host, Event: network.ReportBegun}
		}
		for status, before := range map[string][]network.Report{network.Down: nil, network.Build: {begun(cmp1)}, network.Active: {l2OnCmp1, dhcpReady}} {
			p := fx.createPort(cmp1)
			fx.updateStatus(p.ID, before...)
			for _, otherHost := range []string{cmp2, ""} {
				if s := fx.updateStatus(p.ID, begun(otherHost)); s.Status != status || s.Accepted[0] {
					fx.t.Errorf(
						"report from host %q that wiring has begun: got status %s, want it ignored and status %s",
						otherHost, s.Status, status,
					)
				}
			}
			if s := fx.updateStatus(p.ID, begun(cmp1)); s.Status != network.Build ||
				s.Accepted[0] != (status != network.Build) {
				fx.t.Errorf(
					"report that wiring has begun, for a port with status %s: got %+v, want BUILD, and accepted unless it was BUILD before",
					status,
					s,
				)
			}
		}
		down := fx.createPort(cmp1, withAdminDown)
		fx.updateStatus(down.ID, begun(cmp1))
		fx.checkPort("administratively down", down, network.Down, "DHCP@", "L2@cmp-1")
	},
	"C64 an unplugged port needs a new report": func(fx fixture) {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
		s := fx.updateStatus(p.ID, l2LostOn(cmp1))
		if d := cmp.Diff([]string{network.NovaVIFPlugged, network.NovaVIFUnplugged}, eventNames(s)); d != "" {
			fx.t.Error(d)
		}
		fx.checkPort("unplugged", p, network.Down, "L2@cmp-1")
	},
	"C74 a migrating port without a server becomes active without Nova events": func(fx fixture) {
		p := fx.createPort(cmp1, func(c *network.PortChange) {
			c.DeviceID, c.Profile = ptr("no-server"), json.RawMessage(`{"migrating_to":"cmp-2"}`)
		})
		s := fx.updateStatus(p.ID, dhcpReady, l2OnCmp1)
		if len(s.Events) != 0 {
			fx.t.Errorf("Nova events of a migrating port without a server: got %+v, want none", s.Events)
		}
		fx.checkPort("wired", p, network.Active)
	},
}

func TestBlock_Scenarios(t *testing.T) {
	t.Parallel()
	for name, scenario := range blockScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(newFixture(t, "10.0.0.0/24"))
		})
	}
}
