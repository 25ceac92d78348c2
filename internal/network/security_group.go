package network

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// DefaultGroup is the name of the security group that every project has. If the request that creates a port
// has no security_groups, the port belongs to the security group DefaultGroup of its project.
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

// SecurityGroupChange contains the attributes of a security group that a request sets; an attribute whose
// field is nil does not change.
type SecurityGroupChange struct {
	Project     *string
	Name        *string
	Description *string
	Stateful    *bool
	Tags        *[]string
}

// NewSecurityGroup returns the security group that a create request describes; the returned group has no
// rules.
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

// WithDefaultRules returns the security group with the rules of a new group: all egress is allowed; the group
// named DefaultGroup also allows ingress from its own members.
func (g SecurityGroup) WithDefaultRules() SecurityGroup {
	g.Rules = nil
	for _, kind := range []string{IPv4, IPv6} {
		g.Rules = append(g.Rules, SecurityRule{
			ID:        uuid.New(),
			Group:     g.ID,
			Project:   g.Project,
			Direction: Egress,
			EtherType: kind,
		})
		if g.Name == DefaultGroup {
			g.Rules = append(g.Rules, SecurityRule{
				ID:          uuid.New(),
				Group:       g.ID,
				Project:     g.Project,
				Direction:   Ingress,
				EtherType:   kind,
				RemoteGroup: &g.ID,
			})
		}
	}
	return g
}

// Trusted reports whether the port belongs to the network itself (device_owner network:*). Security groups do
// not filter the traffic of a trusted port.
func (p Port) Trusted() bool { return strings.HasPrefix(p.DeviceOwner, "network:") }

// WithSecurityGroups returns the port with the security groups of the change, or a fault. WithSecurityGroups
// does not check that the security groups exist.
func (p Port) WithSecurityGroups(c PortChange) (Port, error) {
	if c.SecurityGroups != nil {
		p.SecurityGroups = slices.Clone(*c.SecurityGroups)
		byText := func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) }
		slices.SortFunc(p.SecurityGroups, byText)
	}
	switch {
	case p.PortSecurity || len(p.SecurityGroups) == 0:
		return p, nil
	case c.SecurityGroups == nil:
		return p, Faultf(
			PortHasGroups,
			"Port has security group associated. Cannot disable port security or IP address until security group is removed.",
		)
	default:
		return p, Faultf(
			GroupsNeedPortSecurity,
			"Port security must be enabled and port must have an IP address in order to use security groups.",
		)
	}
}

// UsesDefaultGroup reports whether a new port belongs to the default security group of its project.
func (p Port) UsesDefaultGroup(c PortChange) bool {
	return c.SecurityGroups == nil && p.PortSecurity && !p.Trusted()
}
