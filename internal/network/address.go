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

// Wants is what a port asks for when it says `fixed_ips`, in order. The subnets are those of its network.
func Wants(n uuid.UUID, subnets []Subnet, mac string, fixed []Fixed) ([]Want, error) {
	var wants []Want
	for _, f := range fixed {
		w, err := want(n, subnets, mac, f)
		if err != nil {
			return nil, err
		}
		same := func(o Want) bool { return w.IP.IsValid() && o.IP == w.IP && o.Subnets[0].ID == w.Subnets[0].ID }
		if slices.ContainsFunc(wants, same) {
			return nil, invalid("duplicate IP address '%s' specified in fixed_ips.", w.IP)
		}
		wants = append(wants, w)
	}
	return automatic(wants, subnets, mac), nil
}

func want(n uuid.UUID, subnets []Subnet, mac string, f Fixed) (Want, error) {
	if f.Subnet == uuid.Nil {
		at := slices.IndexFunc(subnets, func(s Subnet) bool { return s.usable(f.IP) })
		if at < 0 {
			return Want{}, Faultf(InvalidIPForNetwork, "IP address %s is not a valid IP for any of the subnets on the specified network.", f.IP)
		}
		return Want{f.IP, subnets[at : at+1]}, nil
	}
	at := slices.IndexFunc(subnets, func(s Subnet) bool { return s.ID == f.Subnet })
	if at < 0 {
		return Want{}, invalid("fixed_ips names subnet %s, which is not on network %s.", f.Subnet, n)
	}
	s := subnets[at]
	switch {
	case !f.IP.IsValid() && s.Automatic():
		return Want{EUI64(s.CIDR, mac), subnets[at : at+1]}, nil
	case f.IP.IsValid() && !s.usable(f.IP):
		return Want{}, Faultf(InvalidIPForSubnet, "IP address %s is not a valid IP for the specified subnet.", f.IP)
	default:
		return Want{f.IP, subnets[at : at+1]}, nil
	}
}

// WantsByDefault is what a port gets that says nothing about its addresses: one of each IP version that the
// network's subnets have.
func WantsByDefault(subnets []Subnet, mac string) []Want {
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
	return automatic(wants, subnets, mac)
}

// automatic adds the addresses that hosts make themselves, which a port has whatever it asks for.
func automatic(wants []Want, subnets []Subnet, mac string) []Want {
	for i, s := range subnets {
		if !s.Automatic() {
			continue
		}
		w := Want{EUI64(s.CIDR, mac), subnets[i : i+1]}
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
