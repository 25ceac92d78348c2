package network

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"github.com/google/uuid"
)

// AddressRequest is a request for one IP address of a port: either the given address IP, or any free address.
// A free address comes from the first of Subnets that has a free address.
type AddressRequest struct {
	IP      netip.Addr // invalid: any free address
	Subnets []Subnet   // exactly one subnet if IP is given
}

// AddressRequests returns the address requests for the `fixed_ips` of a client's request, in order. The
// parameter `subnets` contains the subnets of the port's network.
func (p Port) AddressRequests(subnets []Subnet, fixed []FixedIP) ([]AddressRequest, error) {
	if len(fixed) > 0 && len(subnets) == 0 {
		return nil, invalidInput("IP allocation requires subnets for network.")
	}
	var requests []AddressRequest
	for _, f := range fixed {
		w, err := p.addressRequest(subnets, f)
		if err != nil {
			return nil, err
		}
		same := func(o AddressRequest) bool {
			return w.IP.IsValid() && o.IP == w.IP && o.Subnets[0].ID == w.Subnets[0].ID
		}
		if slices.ContainsFunc(requests, same) {
			return nil, invalidInput("duplicate IP address '%s' specified in fixed_ips.", w.IP)
		}
		requests = append(requests, w)
	}
	return p.withAutoAddresses(requests, subnets), nil
}

func (p Port) addressRequest(subnets []Subnet, f FixedIP) (AddressRequest, error) {
	fits := func(s Subnet) bool { return s.ID == f.Subnet || f.Subnet == uuid.Nil && s.isUsable(f.IP) }
	at := slices.IndexFunc(subnets, fits)
	switch {
	case at < 0 && f.Subnet == uuid.Nil:
		return AddressRequest{}, Faultf(InvalidIPForNetwork,
			"IP address %s is not a valid IP for any of the subnets on the specified network.", f.IP)
	case at < 0:
		return AddressRequest{}, invalidInput("subnet %s in fixed_ips is not on network %s.",
			f.Subnet, p.Network)
	case f.IP.IsValid() && !subnets[at].isUsable(f.IP):
		return AddressRequest{}, Faultf(InvalidIPForSubnet,
			"IP address %s is not a valid IP for the specified subnet.", f.IP)
	}
	w := AddressRequest{f.IP, subnets[at : at+1]}
	if p.HasAutoAddressIn(subnets[at]) {
		w.IP = EUI64(subnets[at].CIDR, p.MAC)
		if f.IP.IsValid() && f.IP != w.IP {
			return AddressRequest{}, Faultf(AllocationOnAutoAddressSubnet,
				"IPv6 address %s cannot be directly assigned to a port on subnet %s as the subnet is configured for automatic addresses",
				f.IP, subnets[at].ID)
		}
	}
	return w, nil
}

// routerInterfaceOwners are the device owners of router interfaces. In an auto-address subnet (SLAAC or
// stateless DHCPv6), berth allocates the address of a router interface, like Neutron
// (ROUTER_INTERFACE_OWNERS_SNAT), instead of deriving the address from the MAC.
var routerInterfaceOwners = []string{
	"network:router_interface",
	DeviceOwnerDistributed,
	"network:ha_router_replicated_interface",
	"network:router_centralized_snat",
}

// RouterInterfaceOwners returns the device owners of router interfaces. The ports of router interfaces get no
// address that derives from the MAC.
func RouterInterfaceOwners() []string { return routerInterfaceOwners }

// HasAutoAddressIn reports whether the port's device derives its address in the subnet from the port's MAC
// (SLAAC or stateless DHCPv6).
func (p Port) HasAutoAddressIn(s Subnet) bool {
	return s.IsAutoAddress() && !slices.Contains(routerInterfaceOwners, p.DeviceOwner)
}

// CandidateSubnets returns the subnets of the network from which the port may get addresses: the subnets
// without service types, and the subnets one of whose service types is the device owner of the port. A DHCP
// port also gets addresses from every subnet with DHCP. The subnets with service types come first.
// CandidateSubnets returns a fault if the network has subnets, but the port may get addresses from none of
// them.
func (p Port) CandidateSubnets(subnets []Subnet) ([]Subnet, error) {
	var typed, untyped []Subnet
	for _, s := range subnets {
		switch {
		case len(s.ServiceTypes) == 0:
			untyped = append(untyped, s)
		case slices.Contains(s.ServiceTypes, p.DeviceOwner) || p.DeviceOwner == DeviceOwnerDHCP && s.DHCP:
			typed = append(typed, s)
		}
	}
	candidates := append(typed, untyped...)
	if len(candidates) == 0 && len(subnets) > 0 {
		return nil, Faultf(NoMatchingSubnet,
			"No valid service subnet for the given device owner, network %s, service type %s.",
			p.Network, p.DeviceOwner)
	}
	return candidates, nil
}

// CandidateSubnetsForUpdate returns the candidate subnets of a port that is updated, and the subnets in which
// the port already has addresses.
func (p Port) CandidateSubnetsForUpdate(before Port, subnets []Subnet) ([]Subnet, error) {
	candidates, err := p.CandidateSubnets(subnets)
	for _, s := range subnets {
		held := slices.ContainsFunc(before.Addresses, func(a Address) bool { return a.Subnet == s.ID })
		if held && !slices.ContainsFunc(candidates, func(o Subnet) bool { return o.ID == s.ID }) {
			candidates, err = append(candidates, s), nil
		}
	}
	return candidates, err
}

// DefaultAddressRequests returns the address requests of a port whose create request has no `fixed_ips`: one
// address request for each IP version of the network's subnets.
func (p Port) DefaultAddressRequests(subnets []Subnet) []AddressRequest {
	var requests []AddressRequest
	for _, version := range []int{4, 6} {
		var matching []Subnet
		for _, s := range subnets {
			if s.Version() == version && !s.IsAutoAddress() {
				matching = append(matching, s)
			}
		}
		if len(matching) > 0 {
			requests = append(requests, AddressRequest{Subnets: matching})
		}
	}
	return p.withAutoAddresses(requests, subnets)
}

// maxAddressesForMember is the maximum number of addresses of a port that a member creates or changes on a
// network of another project. It is the default of Neutron's former setting max_fixed_ips_per_port.
const maxAddressesForMember = 5

// CheckAddressCount returns a fault if a member requests an address on a network of another project for a
// port that then has more than maxAddressesForMember addresses. Addresses that derive from the MAC do not
// count, because they take no address from others. A port with more addresses may keep or release them.
func (c PortChange) CheckAddressCount(n Network, before Port, requests []AddressRequest) error {
	if c.Member == nil || *c.Member == n.Project {
		return nil
	}
	count, isNew := 0, false
	for _, w := range requests {
		if w.Subnets[0].IsAutoAddress() {
			continue
		}
		count++
		isNew = isNew || !slices.Contains(before.Addresses, Address{Subnet: w.Subnets[0].ID, IP: w.IP})
	}
	if isNew && count > maxAddressesForMember {
		return invalidInput("Exceeded maximum amount of fixed ips per port.")
	}
	return nil
}

// withAutoAddresses adds an address request for every auto-address subnet of the network, because the port's
// device always has an address in such a subnet.
func (p Port) withAutoAddresses(requests []AddressRequest, subnets []Subnet) []AddressRequest {
	for i, s := range subnets {
		if !p.HasAutoAddressIn(s) {
			continue
		}
		w := AddressRequest{EUI64(s.CIDR, p.MAC), subnets[i : i+1]}
		same := func(o AddressRequest) bool { return o.IP == w.IP && o.Subnets[0].ID == s.ID }
		if !slices.ContainsFunc(requests, same) {
			requests = append(requests, w)
		}
	}
	return requests
}

// EUI64 returns the IPv6 address that a host with the given MAC derives for itself in the given prefix.
func EUI64(cidr netip.Prefix, mac string) netip.Addr {
	m, err := net.ParseMAC(mac)
	if err != nil || len(m) != 6 {
		return netip.Addr{}
	}
	a := cidr.Addr().As16()
	copy(a[8:], []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	return netip.AddrFrom16(a)
}

// firstSearchWindow is the number of addresses in the window from which RandomAddresses draws the first
// random address. The window begins at the start of the pool. RandomAddresses draws each further random
// address from a window that is sixteen times larger than the window before.
const firstSearchWindow = 1 << 16

// RandomAddresses returns up to `n` random addresses of the pool. The first address is near the start of the
// pool; the later addresses may be further away from the start.
func (p Pool) RandomAddresses(n int) []netip.Addr {
	span := p.span()
	found := make([]netip.Addr, 0, n)
	for i := range n {
		a := addToAddress(p.Start, rand.Uint64N(min(span, firstSearchWindow<<(4*i)-1)+1))
		if p.Contains(a) && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found
}

// span returns the distance between the first and the last address of the pool, at most math.MaxUint64.
func (p Pool) span() uint64 {
	first, last := p.Start.As16(), p.End.As16()
	if [8]byte(first[:8]) != [8]byte(last[:8]) {
		return math.MaxUint64
	}
	return lowBits(p.End) - lowBits(p.Start)
}

func lowBits(a netip.Addr) uint64 {
	b := a.As16()
	return binary.BigEndian.Uint64(b[8:])
}

// addToAddress returns the sum of an address and a number. If the sum exceeds the last 64 bits of an IPv6
// address, the sum wraps around and the first 64 bits stay the same.
func addToAddress(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	return netip.AddrFrom16(b)
}

// NewMAC returns a random MAC with OpenStack's default prefix fa:16:3e.
func NewMAC() string {
	n := rand.Uint32N(1 << 24)
	return net.HardwareAddr{0xfa, 0x16, 0x3e, byte(n >> 16), byte(n >> 8), byte(n)}.String()
}

// UnnamedMAC returns the first result of `next` that no draft names as the MAC of its port.
func UnnamedMAC(drafts []PortChange, next func() string) string {
	for {
		mac := next()
		if !slices.ContainsFunc(drafts, func(c PortChange) bool { return c.MAC != nil && *c.MAC == mac }) {
			return mac
		}
	}
}

// NamedAddresses returns the addresses that the fixed IPs of the drafts name on a network.
func NamedAddresses(drafts []PortChange, network uuid.UUID) []netip.Addr {
	named := []netip.Addr{}
	for _, c := range drafts {
		if c.FixedIPs == nil || c.Network == nil || *c.Network != network {
			continue
		}
		for _, f := range *c.FixedIPs {
			if f.IP.IsValid() {
				named = append(named, f.IP)
			}
		}
	}
	return named
}

// MACInUse returns the fault for a port whose MAC another port on the network has.
func (p Port) MACInUse() *Fault {
	return Faultf(MACInUse,
		"Unable to complete operation for network %s. The mac address %s is in use.", p.Network, p.MAC)
}

// MergeFixedIPs returns the fixed IPs that a changed port requests. If an item of the request names only a
// subnet, the result contains an address that the port already had in this subnet. If the request does not
// contain `fixed_ips`, MergeFixedIPs returns the addresses that the port had before the change, without the
// addresses that derive from the MAC.
func (p Port) MergeFixedIPs(before Port, subnets []Subnet, fixed *[]FixedIP) []FixedIP {
	automatic := func(id uuid.UUID) bool {
		return slices.ContainsFunc(subnets,
			func(s Subnet) bool { return s.ID == id && p.HasAutoAddressIn(s) })
	}
	var merged []FixedIP
	if fixed == nil {
		for _, a := range before.Addresses {
			if !automatic(a.Subnet) {
				merged = append(merged, FixedIP(a))
			}
		}
		return merged
	}
	merged = slices.Clone(*fixed)
	taken := map[netip.Addr]bool{}
	for i, f := range merged {
		taken[f.IP] = true
		at := slices.IndexFunc(before.Addresses,
			func(a Address) bool { return a.IP == f.IP && automatic(a.Subnet) })
		if at >= 0 { // the address derives from the MAC, which may change
			merged[i] = FixedIP{Subnet: before.Addresses[at].Subnet}
		}
	}
	for i, f := range merged {
		if f.IP.IsValid() || automatic(f.Subnet) {
			continue
		}
		at := slices.IndexFunc(before.Addresses,
			func(a Address) bool { return a.Subnet == f.Subnet && !taken[a.IP] })
		if at >= 0 {
			merged[i].IP = before.Addresses[at].IP
			taken[merged[i].IP] = true
		}
	}
	return merged
}
