package network_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"berth/internal/network"
)

// In the example, a server's port is bound to a host, waits for the L2 agent of this host and for a DHCP
// agent, and becomes ACTIVE when the last of the two agents has reported.
func Example_portBecomesActive() {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	host, owner := "cmp-1", "compute:nova"
	pc := network.PortContext{
		DHCPHosts:  []string{"net-1"},
		HostAgents: []network.HostAgent{{Type: network.OVSAgent, Alive: true}},
	}

	port := network.NewPort(uuid.New(), network.PortChange{Host: &host, DeviceOwner: &owner})
	port.Revision = 1
	port = port.BindWith(pc.HostAgents)
	port = port.UpdateBlocks(pc, network.BlockTrigger{BindingChanged: true, AddressesChanged: true, Revision: 1}, now).
		UpdateStatus(now)
	fmt.Println(port.StatusView().Sentence())

	// The L2 agent on another host reports; ApplyReports ignores this report.
	port, accepted := port.ApplyReports(pc, []network.Report{{Entity: network.L2, Host: "cmp-2"}}, now)
	fmt.Println(accepted, port.UpdateStatus(now).Status)

	port, accepted = port.ApplyReports(pc, []network.Report{
		{Entity: network.DHCP, Host: "net-1"},
		{Entity: network.L2, Host: "cmp-1"},
	}, now)
	fmt.Println(accepted, port.UpdateStatus(now).Status)
	// Output:
	// DOWN: it waits for DHCP since 2030-01-01T12:00:00Z; it waits for L2 on cmp-1 since 2030-01-01T12:00:00Z
	// [false] DOWN
	// [true true] ACTIVE
}
