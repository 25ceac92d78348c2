package portstore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestPort_DHCPBlockIsRemovedWithDHCP(t *testing.T) {
	t.Parallel()
	gone := map[string]func(fx fixture, p network.Port) error{
		"no addresses": func(fx fixture, p network.Port) error {
			_, err := fx.Network.UpdatePort(fx.t.Context(), p.ID,
				network.PortChange{FixedIPs: &[]network.FixedIP{}}, nil)
			return err
		},
		"DHCP switched off": func(fx fixture, _ network.Port) error {
			_, err := fx.Network.UpdateSubnet(fx.t.Context(), fx.subnet.ID,
				network.SubnetChange{DHCP: ptr(false)}, nil)
			return err
		},
		"unscheduled": func(fx fixture, _ network.Port) error {
			return fx.Network.UnscheduleNetwork(fx.t.Context(),
				fx.agentOfType(network.DHCPAgent).ID, fx.network.ID)
		},
		"agent deleted": func(fx fixture, _ network.Port) error {
			return fx.Network.DeleteAgent(fx.t.Context(), fx.agentOfType(network.DHCPAgent).ID)
		},
		"owner exempt": func(fx fixture, p network.Port) error {
			_, err := fx.Network.UpdatePort(fx.t.Context(), p.ID,
				network.PortChange{DeviceOwner: ptr("network:dhcp")}, nil)
			return err
		},
	}
	for name, act := range gone {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t, "10.0.0.0/24")
			p := fx.createPort(cmp1)
			if s := fx.updateStatus(p.ID, l2OnCmp1); len(s.Waiting) != 1 {
				t.Fatalf("report that the port is wired: got %+v, want one remaining block", s)
			}

			if err := act(fx, p); err != nil {
				t.Fatal(err)
			}

			if after := fx.readPort(p.ID); after.Status != network.Active {
				t.Errorf("remove the reason of the DHCP block: got status %s with blocks %v, want ACTIVE",
					after.Status, blockNames(after.Blocks))
			}
		})
	}
}

func TestPort_BlocksDependOnDeviceOwner(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	for owner, want := range map[string][]string{
		"compute:az1":                            {"DHCP@", "L2@cmp-1"},
		"baremetal:none":                         {"DHCP@", "L2@cmp-1"},
		"network:distributed":                    {"DHCP@", "L2@cmp-1"},
		"":                                       {"L2@cmp-1"},
		"network:dhcp":                           {},
		"network:floatingip":                     {},
		"network:ha_router_replicated_interface": {},
	} {
		p := fx.createPort(cmp1, withDeviceOwner(owner))
		if d := cmp.Diff(want, blockNames(p.Blocks)); d != "" {
			t.Errorf("blocks of a new port with device_owner %q (-want +got): %s", owner, d)
		}
	}
}

func TestPort_NoDHCPBlockForNonReportingAgents(t *testing.T) {
	t.Parallel()
	fx := fixture{Store: storetest.New(t), t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.dhcpHeartbeat(net1, `{}`)
	fx = fx.withNetwork("10.0.0.0/24")
	waiting, moved := fx.createPort(cmp1), fx.createPort(cmp1)
	fx.updateStatus(waiting.ID, l2OnCmp1)
	for _, kind := range []string{`{}`, `{"notifies_port_ready": true}`, `{"notifies_port_ready": null}`, `{"notifies_port_ready": "false"}`, `{"notifies_port_ready": [0]}`} {
		fx.dhcpHeartbeat(net1, kind)
		fx.checkPort(kind, waiting, network.Down, "DHCP@")
		fx.checkPort("a new port, "+kind, fx.createPort(cmp1), network.Down, "DHCP@", "L2@cmp-1")
	}

	fx.dhcpHeartbeat(net1, `{"notifies_port_ready": false}`)

	fx.checkPort("after the agent stopped reporting readiness", waiting, network.Active)
	fx.checkPort("after the agent stopped reporting readiness", moved, network.Down, "L2@cmp-1")
	fx.checkPort("a new port", fx.createPort(cmp1), network.Down, "L2@cmp-1")
}

func TestPort_NoDHCPBlockAfterTakeoverByNonReportingAgent(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.dhcpHeartbeat(net1, `{}`)
	fx = fx.withNetwork("10.0.0.0/24")
	fx.heartbeat(network.OVSAgent, cmp1)
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1)
	expireHeartbeats()
	fx.checkPort("while all agents are down", p, network.Down, "DHCP@")

	fx.dhcpHeartbeat("net-2", `{"notifies_port_ready": false}`)

	fx.checkDHCPHosts("moved to the live agent", "net-2")
	fx.checkPort("after the network moved to an agent that does not report readiness", p, network.Active)
}
