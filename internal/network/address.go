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

// Want is one address that a port shall get: this one, or any free one of the first of these subnets that has one.
type Want struct {
	IP      netip.Addr // invalid: any free one
	Subnets []Subnet   // one, if IP is given
}

// Wants is what the port asks for when it says `fixed_ips`, in order. The subnets are those of its network.
func (p Port) Wants(subnets []Subnet, fixed []Fixed) ([]Want, error) {
	if len(fixed) > 0 && len(subnets) == 0 {
		return nil, invalid("IP allocation requires subnets for network.")
	}
	var wants []Want
	for _, f := range fixed {
		w, err := p.want(subnets, f)
		if err != nil {
			return nil, err
		}
		same := func(o Want) bool { return w.IP.IsValid() && o.IP == w.IP && o.Subnets[0].ID == w.Subnets[0].ID }
		if slices.ContainsFunc(wants, same) {
			return nil, invalid("duplicate IP address '%s' specified in fixed_ips.", w.IP)
		}
		wants = append(wants, w)
	}
	return p.automatic(wants, subnets), nil
}

func (p Port) want(subnets []Subnet, f Fixed) (Want, error) {
	fits := func(s Subnet) bool { return s.ID == f.Subnet || f.Subnet == uuid.Nil && s.usable(f.IP) }
	at := slices.IndexFunc(subnets, fits)
	switch {
	case at < 0 && f.Subnet == uuid.Nil:
		return Want{}, Faultf(InvalidIPForNetwork, "IP address %s is not a valid IP for any of the subnets on the specified network.", f.IP)
	case at < 0:
		return Want{}, invalid("fixed_ips names subnet %s, which is not on network %s.", f.Subnet, p.Network)
	case f.IP.IsValid() && !subnets[at].usable(f.IP):
		return Want{}, Faultf(InvalidIPForSubnet, "IP address %s is not a valid IP for the specified subnet.", f.IP)
	}
	w := Want{f.IP, subnets[at : at+1]}
	if p.MakesAddressIn(subnets[at]) {
		w.IP = EUI64(subnets[at].CIDR, p.MAC)
		if f.IP.IsValid() && f.IP != w.IP {
			return Want{}, Faultf(OnAutomaticSubnet,
				"IPv6 address %s cannot be directly assigned to a port on subnet %s as the subnet is configured for automatic addresses", f.IP, subnets[at].ID)
		}
	}
	return w, nil
}

// routing are the owners of ports through which a subnet is left; their addresses are chosen, also where those of hosts are not.
var routing = []string{"network:router_interface", distributedOwner, "network:ha_router_replicated_interface", "network:router_centralized_snat"}

// Routing are the owners of ports that make no address themselves.
func Routing() []string { return routing }

// MakesAddressIn tells whether what is plugged into the port makes its address in the subnet from its MAC.
func (p Port) MakesAddressIn(s Subnet) bool {
	return s.Automatic() && !slices.Contains(routing, p.DeviceOwner)
}

// WantsByDefault is what the port gets if it says nothing about its addresses: one of each IP version that the
// network's subnets have.
func (p Port) WantsByDefault(subnets []Subnet) []Want {
	var wants []Want
	for _, version := range []int{4, 6} {
		var of []Subnet
		for _, s := range subnets {
			if s.Version() == version && !s.Automatic() {
				of = append(of, s)
			}
		}
		if len(of) > 0 {
			wants = append(wants, Want{Subnets: of})
		}
	}
	return p.automatic(wants, subnets)
}

// automatic adds the addresses that hosts make themselves, which the port has whatever it asks for.
func (p Port) automatic(wants []Want, subnets []Subnet) []Want {
	for i, s := range subnets {
		if !p.MakesAddressIn(s) {
			continue
		}
		w := Want{EUI64(s.CIDR, p.MAC), subnets[i : i+1]}
		if !slices.ContainsFunc(wants, func(o Want) bool { return o.IP == w.IP && o.Subnets[0].ID == s.ID }) {
			wants = append(wants, w)
		}
	}
	return wants
}

// EUI64 is the address that a host with that MAC makes for itself in the block.
func EUI64(cidr netip.Prefix, mac string) netip.Addr {
	m, err := net.ParseMAC(mac)
	if err != nil || len(m) != 6 {
		return netip.Addr{}
	}
	a := cidr.Addr().As16()
	copy(a[8:], []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	return netip.AddrFrom16(a)
}

// window is how far into a pool chance looks for a free address at first; each further one is looked for in sixteen
// times as much.
const window = 1 << 16

// Candidates are up to n addresses of the pool by chance, the first near its beginning.
func (p Pool) Candidates(n int) []netip.Addr {
	span := p.span()
	found := make([]netip.Addr, 0, n)
	for i := range n {
		a := plus(p.Start, rand.Uint64N(min(span, window<<(4*i)-1)+1))
		if p.Contains(a) && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found
}

// span is how far the pool's last address is from its first, or the greatest number if it is farther than that.
func (p Pool) span() uint64 {
	first, last := p.Start.As16(), p.End.As16()
	if [8]byte(first[:8]) != [8]byte(last[:8]) {
		return math.MaxUint64
	}
	return low(p.End) - low(p.Start)
}

func low(a netip.Addr) uint64 {
	b := a.As16()
	return binary.BigEndian.Uint64(b[8:])
}

// plus is the address n after a, wrapping around within the last 64 bits.
func plus(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	return netip.AddrFrom16(b)
}

// NewMAC is a MAC by chance with the vendor's prefix.
func NewMAC() string {
	n := rand.Uint32N(1 << 24)
	return net.HardwareAddr{0xfa, 0x16, 0x3e, byte(n >> 16), byte(n >> 8), byte(n)}.String()
}
