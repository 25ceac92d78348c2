package rpc

import (
	"net/netip"

	"github.com/google/uuid"

	"berth/internal/network"
)

// refusedGateways are addresses that the kernel of a DHCP agent's host refuses as a gateway, because they are
// those of the agent's port or a broadcast address of a subnet in which the port has an address. The owner of
// a network can choose such a gateway. The agent would then synchronize all its networks again and again.
type refusedGateways map[onNetwork]bool

type onNetwork struct {
	network uuid.UUID
	ip      netip.Addr
}

// addPort adds the addresses of a DHCP agent's port.
func (refused refusedGateways) addPort(p network.Port) {
	if p.DeviceOwner != network.DeviceOwnerDHCP {
		return
	}
	for _, a := range p.Addresses {
		refused[onNetwork{p.Network, a.IP}] = true
	}
}

// addSubnets adds the broadcast addresses of subnets.
func (refused refusedGateways) addSubnets(subnets []network.Subnet) {
	for _, s := range subnets {
		if s.DHCP && s.Version() == 4 { // old kernels broadcast to the lowest address, too
			refused[onNetwork{s.Network, s.CIDR.Addr()}] = true
			refused[onNetwork{s.Network, s.LastAddress()}] = true
		}
	}
}

// removeFrom removes the gateways that the kernel refuses.
func (refused refusedGateways) removeFrom(subnets []network.Subnet) {
	for i, s := range subnets {
		if refused[onNetwork{s.Network, s.Gateway}] {
			subnets[i].Gateway = netip.Addr{}
		}
	}
}
