package network

import (
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Pool is an allocation pool: a range of addresses for automatic allocation, both ends included.
type Pool struct {
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
}

// Route is a static host route that DHCP gives to the hosts of a subnet.
type Route struct {
	Destination netip.Prefix `json:"destination"`
	NextHop     netip.Addr   `json:"nexthop"`
}

// Subnet is a Neutron subnet: an address block on a network.
type Subnet struct {
	ID           uuid.UUID
	Network      uuid.UUID
	Project      string
	Name         string
	Description  string
	CIDR         netip.Prefix
	Gateway      netip.Addr // invalid: none
	DHCP         bool
	Pools        []Pool
	DNS          []string
	Routes       []Route
	RAMode       string   // ipv6_ra_mode; empty: none
	AddressMode  string   // ipv6_address_mode; empty: none
	ServiceTypes []string // device owners of the ports that get addresses from the subnet; empty: every port
	Tags         []string
	Revision     int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// SubnetChange contains the attributes of a subnet that a request sets; an attribute whose field is nil does
// not change.
type SubnetChange struct {
	Network      *uuid.UUID
	Project      *string
	Name         *string
	Description  *string
	IPVersion    *int
	CIDR         *netip.Prefix
	Gateway      *netip.Addr // points to the invalid address for no gateway
	DHCP         *bool
	Pools        *[]Pool
	DNS          *[]string
	Routes       *[]Route
	RAMode       *string
	AddressMode  *string
	Tags         *[]string
	ServiceTypes *[]string
}

// IPv6 modes in which hosts derive their addresses from their MAC.
const (
	SLAAC     = "slaac"
	Stateless = "dhcpv6-stateless"
)

// Version returns the IP version, 4 or 6.
func (s Subnet) Version() int {
	if s.CIDR.Addr().Is4() {
		return 4
	}
	return 6
}

// IsAutoAddress reports whether hosts derive their addresses in the subnet from their MAC (Neutron's
// is_auto_address_subnet).
func (s Subnet) IsAutoAddress() bool {
	automatic := func(mode string) bool { return mode == SLAAC || mode == Stateless }
	return automatic(s.AddressMode) || automatic(s.RAMode)
}

// NewSubnet returns the subnet that a create request describes, with Neutron's defaults, or a fault.
func NewSubnet(id uuid.UUID, c SubnetChange) (Subnet, error) {
	s := Subnet{
		ID:           id,
		DHCP:         true,
		Tags:         []string{},
		ServiceTypes: []string{},
	}
	if c.CIDR == nil {
		return s, Faultf(BadRequest,
			"Bad subnets request: a subnetpool must be specified in the absence of a cidr.")
	}
	s.CIDR = c.CIDR.Masked()
	// Neutron's placeholder for a delegated prefix; no host has an address in it
	if s.CIDR.Addr() == netip.IPv6Unspecified() {
		return s, invalidInput("the IPv6 subnet %s begins with the unspecified address '::'.", s.CIDR)
	}
	s.RAMode, s.AddressMode = deref(c.RAMode), deref(c.AddressMode)
	s.Gateway = s.defaultGateway()
	if c.Gateway != nil {
		s.Gateway = *c.Gateway
	}
	if c.Pools == nil {
		s.Pools = DefaultPools(s.CIDR, s.Gateway)
	}
	if c.IPVersion != nil && *c.IPVersion != s.Version() {
		return s, invalidInput("cidr '%s' does not match the ip_version '%d'.", s.CIDR, *c.IPVersion)
	}
	if s.Version() == 4 && (s.RAMode != "" || s.AddressMode != "") {
		return s, invalidInput("ipv6_ra_mode and ipv6_address_mode cannot be set when ip_version is 4.")
	}
	if s.RAMode != "" && s.AddressMode != "" && s.RAMode != s.AddressMode {
		return s, invalidInput(
			"ipv6_ra_mode set to '%s' with ipv6_address_mode set to '%s' is not valid. If both attributes are set, they must be the same value.",
			s.RAMode,
			s.AddressMode,
		)
	}
	if s.IsAutoAddress() && s.CIDR.Bits() != 64 {
		return s, invalidInput(
			"Invalid CIDR %s for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the prefix to be /64.",
			s.CIDR,
		)
	}
	return s.With(c)
}

// With returns the subnet after the change, or a fault. A subnet that an earlier version of berth has
// accepted can keep what a DHCP agent cannot serve.
func (s Subnet) With(c SubnetChange) (Subnet, error) {
	set(&s.Network, c.Network)
	set(&s.Project, c.Project)
	set(&s.Name, c.Name)
	set(&s.Description, c.Description)
	set(&s.Gateway, c.Gateway)
	set(&s.DHCP, c.DHCP)
	set(&s.Pools, c.Pools)
	set(&s.DNS, c.DNS)
	set(&s.Routes, c.Routes)
	set(&s.Tags, c.Tags)
	set(&s.ServiceTypes, c.ServiceTypes)
	if c.CIDR != nil || c.Gateway != nil || c.DHCP != nil {
		if err := s.checkDHCP(); err != nil {
			return s, err
		}
	}
	return s, s.check()
}

// Maximum number of name servers and of host routes of a subnet.
const (
	maxDNS    = 5
	maxRoutes = 20
)

// check returns a fault if the attributes of the subnet contradict each other.
func (s Subnet) check() error {
	if s.Gateway.IsValid() && s.Gateway.Is4() != s.CIDR.Addr().Is4() {
		return invalidInput("gateway_ip '%s' does not match the ip_version '%d'.", s.Gateway, s.Version())
	}
	if s.Gateway.Is4() && s.CIDR.Contains(s.Gateway) && !s.isUsable(s.Gateway) {
		return invalidInput("Gateway is not valid on subnet: %s is not a host address of %s.",
			s.Gateway, s.CIDR)
	}
	if len(s.DNS) > maxDNS {
		return Faultf(TooManyDNS,
			"Unable to complete operation for %s. The number of DNS nameservers exceeds the limit %d.",
			s.ID, maxDNS)
	}
	if len(s.Routes) > maxRoutes {
		return Faultf(TooManyRoutes,
			"Unable to complete operation for %s. The number of host routes exceeds the limit %d.",
			s.ID, maxRoutes)
	}
	for i, server := range s.DNS {
		if a, err := netip.ParseAddr(server); err != nil || a.Is4() != s.CIDR.Addr().Is4() {
			return invalidInput("dns_nameserver '%s' does not match the ip_version '%d'.",
				server, s.Version())
		}
		if slices.Contains(s.DNS[:i], server) {
			return invalidInput("duplicate nameserver '%s'.", server)
		}
	}
	for i, r := range s.Routes {
		if r.Destination.Addr().Is4() != s.CIDR.Addr().Is4() || r.NextHop.Is4() != s.CIDR.Addr().Is4() {
			return invalidInput("host route %s via %s does not match the ip_version '%d'.",
				r.Destination, r.NextHop, s.Version())
		}
		if slices.Contains(s.Routes[:i], r) {
			return invalidInput("duplicate host route %s via %s.", r.Destination, r.NextHop)
		}
	}
	return s.checkPools()
}

var (
	loopback   = netip.MustParsePrefix("127.0.0.0/8")
	linkLocal6 = netip.MustParsePrefix("fe80::/10")
)

// checkDHCP returns a fault if DHCP is enabled and a DHCP agent cannot serve the subnet. The agent gives its
// port an address of the subnet and a route to the gateway. If the kernel of its host refuses one of these,
// the agent synchronizes all its networks again and again.
func (s Subnet) checkDHCP() error {
	switch a := s.CIDR.Addr(); {
	case !s.DHCP && (s.RAMode != "" || s.AddressMode != ""):
		return invalidInput(
			"ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False.",
		)
	case !s.DHCP:
		return nil
	case s.CIDR.Bits() > a.BitLen()-2:
		return invalidInput("the prefix length of %s is too long for a subnet with DHCP enabled.", s.CIDR)
	case a == netip.IPv4Unspecified():
		return invalidInput("First IP '0.0.0.0' of network is not supported if enable_dhcp is True.")
	case slices.ContainsFunc(multicast, s.CIDR.Overlaps): // the agent's port may get a multicast address
		return invalidInput("Multicast IP subnet is not supported if enable_dhcp is True.")
	case loopback.Overlaps(s.CIDR) || a == netip.IPv6Loopback():
		return invalidInput("Loopback IP subnet is not supported if enable_dhcp is True.")
	case linkLocal6.Overlaps(s.CIDR): // has the address of the agent's metadata service
		return invalidInput("Link-local IPv6 subnet is not supported if enable_dhcp is True.")
	case s.Gateway.IsValid() && !s.Gateway.IsGlobalUnicast() && !s.Gateway.IsLinkLocalUnicast():
		return invalidInput("gateway_ip '%s' is not the address of a host, which enable_dhcp requires.", s.Gateway)
	default:
		return nil
	}
}

func (s Subnet) checkPools() error {
	for i, p := range s.Pools {
		if p.Start.Is4() != s.CIDR.Addr().Is4() || p.End.Is4() != s.CIDR.Addr().Is4() || p.End.Less(p.Start) {
			return Faultf(InvalidPool, "The allocation pool %s-%s is not valid.", p.Start, p.End)
		}
		if !s.isUsable(p.Start) || !s.isUsable(p.End) {
			return Faultf(OutOfBoundsPool, "The allocation pool %s-%s spans beyond the subnet cidr %s.",
				p.Start, p.End, s.CIDR)
		}
		if s.Gateway.IsValid() && p.Contains(s.Gateway) {
			return Faultf(GatewayInPool, "Gateway ip %s conflicts with allocation pool %s-%s.",
				s.Gateway, p.Start, p.End)
		}
		overlaps := func(o Pool) bool { return !p.End.Less(o.Start) && !o.End.Less(p.Start) }
		if slices.ContainsFunc(s.Pools[:i], overlaps) {
			return Faultf(OverlappingPools, "Found overlapping allocation pools: %s-%s for subnet %s.",
				p.Start, p.End, s.CIDR)
		}
	}
	return nil
}

// Contains reports whether the address is in the pool.
func (p Pool) Contains(a netip.Addr) bool { return !a.Less(p.Start) && !p.End.Less(a) }

// isUsable reports whether a host can have the address: the address is in the subnet and is neither the
// network address nor the IPv4 broadcast address. A subnet of size /31, /32, /127 or /128 has no network
// address and no broadcast address.
func (s Subnet) isUsable(a netip.Addr) bool {
	if !s.CIDR.Contains(a) {
		return false
	}
	if s.CIDR.Bits() >= s.CIDR.Addr().BitLen()-1 {
		return true
	}
	return a != s.CIDR.Addr() && (a.Is6() || a != lastAddress(s.CIDR))
}

// LastAddress returns the highest address of the subnet: in an IPv4 subnet the broadcast address.
func (s Subnet) LastAddress() netip.Addr { return lastAddress(s.CIDR) }

// defaultGateway returns the first host address of an IPv4 subnet, or the subnet-router anycast address of an
// IPv6 subnet.
func (s Subnet) defaultGateway() netip.Addr {
	if s.Version() == 6 || s.CIDR.Bits() >= s.CIDR.Addr().BitLen()-1 {
		return s.CIDR.Addr()
	}
	return s.CIDR.Addr().Next()
}

// DefaultPools returns allocation pools with all host addresses of the subnet except the gateway.
func DefaultPools(cidr netip.Prefix, gateway netip.Addr) []Pool {
	first, end := cidr.Addr(), lastAddress(cidr)
	if cidr.Bits() < first.BitLen()-1 {
		first = first.Next()
		if first.Is4() {
			end = end.Prev()
		}
	}
	whole := Pool{first, end}
	if !gateway.IsValid() || !whole.Contains(gateway) {
		return []Pool{whole}
	}
	var pools []Pool
	if first.Less(gateway) {
		pools = append(pools, Pool{first, gateway.Prev()})
	}
	if gateway.Less(end) {
		pools = append(pools, Pool{gateway.Next(), end})
	}
	return pools
}

// lastAddress returns the highest address of the address block.
func lastAddress(cidr netip.Prefix) netip.Addr {
	b := cidr.Addr().AsSlice()
	for i := cidr.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func invalidInput(format string, args ...any) *Fault {
	return Faultf(InvalidInput, "Invalid input for operation: "+format, args...)
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
