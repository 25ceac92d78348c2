package network

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SecurityRule is a security group rule. A security group rule allows traffic.
type SecurityRule struct {
	ID          uuid.UUID    `json:"id"`
	Group       uuid.UUID    `json:"group_id"`
	Project     string       `json:"project"`
	Description string       `json:"description"`
	Direction   string       `json:"direction"`
	EtherType   string       `json:"ethertype"`
	Protocol    string       `json:"protocol"` // name or number; empty: any
	PortMin     *int         `json:"port_min"` // for ICMP: the type
	PortMax     *int         `json:"port_max"` // for ICMP: the code
	RemoteIP    netip.Prefix `json:"remote_ip"`
	RemoteGroup *uuid.UUID   `json:"remote_group"`
	Revision    int64        `json:"revision"`
	CreatedAt   time.Time    `json:"created_at"`
	UpdatedAt   time.Time    `json:"updated_at"`
}

// SecurityRuleChange contains the attributes of a request to create a security group rule; if the request
// does not contain an attribute, its field is nil.
type SecurityRuleChange struct {
	Group       *uuid.UUID
	Project     *string
	Description *string
	Direction   *string
	EtherType   *string
	Protocol    *string
	PortMin     *int
	PortMax     *int
	RemoteIP    *netip.Prefix
	RemoteGroup *uuid.UUID
}

// NewSecurityRule returns the rule that a create request describes, or a fault.
func NewSecurityRule(id uuid.UUID, c SecurityRuleChange) (SecurityRule, error) {
	r := SecurityRule{
		ID:          id,
		EtherType:   IPv4,
		PortMin:     c.PortMin,
		PortMax:     c.PortMax,
		RemoteGroup: c.RemoteGroup,
	}
	set(&r.Group, c.Group)
	set(&r.Project, c.Project)
	set(&r.Description, c.Description)
	set(&r.Direction, c.Direction)
	set(&r.EtherType, c.EtherType)
	set(&r.Protocol, c.Protocol)
	set(&r.RemoteIP, c.RemoteIP)
	r = r.canonical()
	return r, r.check()
}

// protocolNumbers are the protocols that a rule may name, with their numbers.
var protocolNumbers = map[string]int{
	"ah":         51,
	"dccp":       33,
	"egp":        8,
	"esp":        50,
	"gre":        47,
	"hopopt":     0,
	"icmp":       1,
	"icmpv6":     58,
	"igmp":       2,
	"ip":         0,
	"ipip":       4,
	"ipv6-encap": 41,
	"ipv6-frag":  44,
	"ipv6-icmp":  58,
	"ipv6-nonxt": 59,
	"ipv6-opts":  60,
	"ipv6-route": 43,
	"ospf":       89,
	"pgm":        113,
	"rsvp":       46,
	"sctp":       132,
	"tcp":        6,
	"udp":        17,
	"udplite":    136,
	"vrrp":       112,
}

// Numbers of protocols with port ranges, of protocols with ICMP types, and of protocols that only IPv6 has.
var (
	portRangeProtocols = []int{6, 17, 33, 132, 136}
	icmpProtocols      = []int{1, 58}
	ipv6OnlyProtocols  = []int{41, 43, 44, 58, 59, 60}
)

// protocolNumber returns the number of the rule's protocol. The result `ok` is false if the rule has no
// protocol or an unknown one.
func (r SecurityRule) protocolNumber() (number int, ok bool) {
	if number, ok = protocolNumbers[r.Protocol]; ok {
		return number, true
	}
	number, err := strconv.Atoi(r.Protocol)
	return number, err == nil && number >= 0 && number <= 255
}

// EqualProtocols returns the values of Protocol that name the same protocol as the rule: "tcp" and "6" are
// the same protocol.
func (r SecurityRule) EqualProtocols() []string {
	number, known := r.protocolNumber()
	if !known {
		return []string{r.Protocol}
	}
	equal := []string{strconv.Itoa(number)}
	for name, its := range protocolNumbers {
		if its == number {
			equal = append(equal, name)
		}
	}
	return slices.Sorted(slices.Values(equal))
}

// EqualRemoteIPs returns the texts of RemoteIP that match the same addresses as the rule: a prefix of length
// 0 matches the same addresses as no prefix. The text of no prefix is "".
func (r SecurityRule) EqualRemoteIPs() []string {
	if !r.RemoteIP.IsValid() || r.RemoteIP.Bits() == 0 {
		return []string{"", "0.0.0.0/0", "::/0"}
	}
	return []string{r.RemoteIP.String()}
}

// canonical returns the rule in the form in which Neutron stores it: ICMP for IPv6 has a name and a number of
// its own, and a range of all ports is no range. A number is decimal, without a sign and leading zeros:
// Neutron's agents cannot read a rule with another form, and then wire no port of their host.
func (r SecurityRule) canonical() SecurityRule {
	if _, named := protocolNumbers[r.Protocol]; !named {
		if number, known := r.protocolNumber(); known {
			r.Protocol = strconv.Itoa(number)
		}
	}
	if r.EtherType == IPv6 {
		switch r.Protocol {
		case "icmp", "icmpv6":
			r.Protocol = "ipv6-icmp"
		case "1":
			r.Protocol = "58"
		}
	}
	if r.PortMin != nil && r.PortMax != nil && *r.PortMin == 1 && *r.PortMax == maxPort {
		r.PortMin, r.PortMax = nil, nil
	}
	return r
}

// maxPort is the highest port number of TCP, UDP and similar protocols.
const maxPort = 65535

func (r SecurityRule) check() error {
	number, known := r.protocolNumber()
	if !known && r.Protocol != "" {
		return Faultf(RuleProtocol,
			"Security group rule protocol %s not supported. Only protocol values [%s] and integer representations [0 to 255] are supported.",
			r.Protocol, strings.Join(slices.Sorted(maps.Keys(protocolNumbers)), ", "))
	}
	if err := r.checkPorts(number); err != nil {
		return err
	}
	switch {
	case r.RemoteIP.IsValid() && r.RemoteIP.Addr().Is4() != (r.EtherType == IPv4):
		return Faultf(RuleConflict, "Conflicting value ethertype %s for CIDR %s", r.EtherType, r.RemoteIP)
	case known && r.EtherType == IPv4 && slices.Contains(ipv6OnlyProtocols, number):
		return Faultf(RuleEtherType, "Invalid ethertype %s for protocol %s.", r.EtherType, r.Protocol)
	case r.RemoteIP.IsValid() && r.RemoteGroup != nil:
		return Faultf(
			RuleRemotes,
			"Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.",
		)
	}
	return nil
}

// checkPorts returns a fault if the rule's port range does not suit the protocol with the given number.
func (r SecurityRule) checkPorts(protocol int) error {
	low, high := r.PortMin, r.PortMax
	zero := func(v *int) bool { return v != nil && *v == 0 }
	switch {
	case low == nil && high == nil:
		return nil
	case r.Protocol == "":
		return Faultf(RuleNeedsProtocol, "Must also specify protocol if port range is given.")
	case slices.Contains(icmpProtocols, protocol):
		return r.checkICMP()
	case !slices.Contains(portRangeProtocols, protocol):
		return Faultf(RuleNoPorts,
			"Ports cannot be specified for protocol %d. Ports are only supported for DCCP, SCTP, TCP, UDP, UDPLITE.",
			protocol)
	case zero(low) || zero(high):
		return Faultf(RulePort, "Invalid value for port 0")
	case low == nil || high == nil || *low > *high:
		return Faultf(RulePorts, "For TCP/UDP protocols, port_range_min must be <= port_range_max")
	}
	return nil
}

// checkICMP returns a fault if the ICMP type, which is PortMin, and the ICMP code, which is PortMax, are not
// valid.
func (r SecurityRule) checkICMP() error {
	outside := func(v *int) bool { return v != nil && (*v < 0 || *v > 255) }
	switch {
	case outside(r.PortMin):
		return Faultf(RuleICMPValue,
			"Invalid value for ICMP type (port_range_min) %d. It must be 0 to 255.", *r.PortMin)
	case outside(r.PortMax):
		return Faultf(RuleICMPValue,
			"Invalid value for ICMP code (port_range_max) %d. It must be 0 to 255.", *r.PortMax)
	case r.PortMin == nil:
		return Faultf(RuleICMPType,
			"ICMP code (port-range-max) %d is provided but ICMP type (port-range-min) is missing.",
			*r.PortMax)
	default:
		return nil
	}
}
