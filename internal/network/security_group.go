package network

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// DefaultGroup is the name of the security group that every project has. If the request that creates a port has no security_groups, the
// port belongs to the security group DefaultGroup of its project.
const DefaultGroup = "default"

// SecurityGroup is a Neutron security group.
type SecurityGroup struct {
	ID          uuid.UUID
	Project     string
	Name        string
	Description string
	Stateful    bool
	Rules       []SecurityRule
	Tags        []string
	Revision    int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// SecurityGroupChange contains the attributes of a security group that a request sets; an attribute whose field is nil does not change.
type SecurityGroupChange struct {
	Project     *string
	Name        *string
	Description *string
	Stateful    *bool
	Tags        *[]string
}

// NewSecurityGroup returns the security group that a create request describes; the returned group has no rules.
func NewSecurityGroup(id uuid.UUID, c SecurityGroupChange) SecurityGroup {
	return SecurityGroup{ID: id, Stateful: true, Tags: []string{}}.With(c)
}

// With returns the security group after the change.
func (g SecurityGroup) With(c SecurityGroupChange) SecurityGroup {
	set(&g.Project, c.Project)
	set(&g.Name, c.Name)
	set(&g.Description, c.Description)
	set(&g.Stateful, c.Stateful)
	set(&g.Tags, c.Tags)
	return g
}

// Directions and ether types of security group rules.
const (
	Ingress = "ingress"
	Egress  = "egress"
	IPv4    = "IPv4"
	IPv6    = "IPv6"
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

// SecurityRuleChange contains the attributes of a request to create a security group rule; if the request does not contain an attribute,
// its field is nil.
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
	r := SecurityRule{ID: id, EtherType: IPv4, PortMin: c.PortMin, PortMax: c.PortMax, RemoteGroup: c.RemoteGroup}
	set(&r.Group, c.Group)
	set(&r.Project, c.Project)
	set(&r.Description, c.Description)
	set(&r.Direction, c.Direction)
	set(&r.EtherType, c.EtherType)
	set(&r.Protocol, c.Protocol)
	set(&r.RemoteIP, c.RemoteIP)
	return r, r.check()
}

// WithDefaultRules returns the security group with the rules of a new group: all egress is allowed; the group named DefaultGroup also
// allows ingress from its own members.
func (g SecurityGroup) WithDefaultRules() SecurityGroup {
	g.Rules = nil
	for _, kind := range []string{IPv4, IPv6} {
		g.Rules = append(g.Rules, SecurityRule{ID: uuid.New(), Group: g.ID, Project: g.Project, Direction: Egress, EtherType: kind})
		if g.Name == DefaultGroup {
			g.Rules = append(g.Rules, SecurityRule{ID: uuid.New(), Group: g.ID, Project: g.Project, Direction: Ingress, EtherType: kind, RemoteGroup: &g.ID})
		}
	}
	return g
}

// Protocols with port ranges, protocols with ICMP types, protocols for IPv6 only, and all protocol names.
var (
	portRangeProtocols = []string{"tcp", "6", "udp", "17", "sctp", "132", "dccp", "33", "udplite", "136"}
	icmpProtocols      = []string{"icmp", "1", "icmpv6", "ipv6-icmp", "58"}
	ipv6OnlyProtocols  = []string{"icmpv6", "ipv6-icmp", "58", "ipv6-encap", "ipv6-frag", "ipv6-nonxt", "ipv6-opts", "ipv6-route"}
	protocols          = []string{"ah", "dccp", "egp", "esp", "gre", "icmp", "icmpv6", "igmp", "ipip", "ipv6-encap", "ipv6-frag", "ipv6-icmp",
		"ipv6-nonxt", "ipv6-opts", "ipv6-route", "ospf", "pgm", "rsvp", "sctp", "tcp", "udp", "udplite", "vrrp"}
)

func (r SecurityRule) check() error {
	number, err := strconv.Atoi(r.Protocol)
	known := r.Protocol == "" || slices.Contains(protocols, r.Protocol) || err == nil && number >= 0 && number <= 255
	switch {
	case !known:
		return Faultf(RuleProtocol, "Security group rule protocol %s not supported. Only protocol values [%s] and integer representations [0 to 255] are supported.",
			r.Protocol, strings.Join(protocols, ", "))
	case r.EtherType == IPv4 && slices.Contains(ipv6OnlyProtocols, r.Protocol):
		return Faultf(RuleEtherType, "Invalid ethertype %s for protocol %s.", r.EtherType, r.Protocol)
	case r.RemoteIP.IsValid() && r.RemoteGroup != nil:
		return Faultf(RuleRemotes, "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.")
	case r.RemoteIP.IsValid() && r.RemoteIP.Addr().Is4() != (r.EtherType == IPv4):
		return Faultf(RuleConflict, "Conflicting value ethertype %s for CIDR %s", r.EtherType, r.RemoteIP)
	}
	return r.checkPorts()
}

func (r SecurityRule) checkPorts() error {
	low, high := r.PortMin, r.PortMax
	switch {
	case low == nil && high == nil:
		return nil
	case r.Protocol == "":
		return Faultf(RuleNeedsProtocol, "Must also specify protocol if port range is given.")
	case slices.Contains(icmpProtocols, r.Protocol):
		if low == nil {
			return Faultf(RuleICMPType, "ICMP code (port-range-max) %d is provided but ICMP type (port-range-min) is missing.", *high)
		}
		for field, v := range map[string]*int{"port_range_min": low, "port_range_max": high} {
			if v != nil && (*v < 0 || *v > 255) {
				return Faultf(RuleICMPValue, "Invalid value for ICMP %s (%d). It must be 0 to 255.", field, *v)
			}
		}
		return nil
	case !slices.Contains(portRangeProtocols, r.Protocol):
		return Faultf(RuleNoPorts, "Invalid protocol %s for port range, only supported for TCP, UDP, UDPLITE, SCTP and DCCP.", r.Protocol)
	case low == nil || high == nil || *low > *high:
		return Faultf(RulePorts, "For TCP/UDP protocols, port_range_min must be <= port_range_max")
	case *low < 1 || *high > 65535:
		return Faultf(RulePort, "Invalid value for port %d", map[bool]int{true: *low, false: *high}[*low < 1])
	}
	return nil
}

// Trusted reports whether the port belongs to the network itself (device_owner network:*). Security groups do not filter the traffic of a
// trusted port.
func (p Port) Trusted() bool { return strings.HasPrefix(p.DeviceOwner, "network:") }

// WithSecurityGroups returns the port with the security groups of the change, or a fault. WithSecurityGroups does not check that the
// security groups exist.
func (p Port) WithSecurityGroups(c PortChange) (Port, error) {
	if c.SecurityGroups != nil {
		p.SecurityGroups = slices.Clone(*c.SecurityGroups)
		slices.SortFunc(p.SecurityGroups, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		p.SecurityGroups = slices.Compact(p.SecurityGroups)
	}
	switch {
	case p.PortSecurity || len(p.SecurityGroups) == 0:
		return p, nil
	case c.SecurityGroups == nil:
		return p, Faultf(PortHasGroups, "Port has security group associated. Cannot disable port security or IP address until security group is removed.")
	default:
		return p, Faultf(GroupsNeedPortSecurity, "Port security must be enabled and port must have an IP address in order to use security groups.")
	}
}

// UsesDefaultGroup reports whether a new port belongs to the default security group of its project.
func (p Port) UsesDefaultGroup(c PortChange) bool {
	return c.SecurityGroups == nil && p.PortSecurity && !p.Trusted()
}
