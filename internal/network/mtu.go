package network

import "cmp"

// defaultPhysicalMTU is the MTU of physical networks in bytes, unless the operator sets another one.
const defaultPhysicalMTU = 1500

// tunnelOverhead is the size in bytes of the headers that VXLAN adds to a frame.
const tunnelOverhead = 50

// minMTU are the smallest MTUs of a network with a subnet, in bytes, by IP version (RFC 791, RFC 8200).
var minMTU = map[int]int{4: 68, 6: 1280}

// ResolveMTU gives a network with the MTU 0 the largest MTU of its network type, and returns a fault if the
// network's MTU is larger than that. The parameter `physical` is the MTU of the physical networks in bytes; 0
// means 1500.
func (n Network) ResolveMTU(physical int) (Network, error) {
	largest := cmp.Or(physical, defaultPhysicalMTU)
	if n.Type == VXLAN {
		largest -= tunnelOverhead
	}
	if n.MTU > largest {
		return n, Faultf(InvalidInput,
			"Invalid input for operation: Requested MTU is too big, maximum is %d.", largest)
	}
	n.MTU = cmp.Or(n.MTU, largest)
	return n, nil
}

// CheckMTUForMember returns a fault if only administrators and services may choose the MTU of a network; 0
// means the largest.
func CheckMTUForMember(mtu int) error {
	if mtu != 0 && mtu < minMTU[6] {
		return Faultf(InvalidInput,
			"Invalid input for operation: Requested MTU is too small, minimum is %d.", minMTU[6])
	}
	return nil
}

// CheckMTU returns a fault if the network's MTU is too small for one of the subnets.
func (n Network) CheckMTU(subnets []Subnet) error {
	for _, s := range subnets {
		if smallest := minMTU[s.Version()]; n.MTU < smallest {
			return Faultf(MTUTooSmall, "MTU of %s is not valid, subnet requires a minimum of %d",
				n.ID, smallest)
		}
	}
	return nil
}
