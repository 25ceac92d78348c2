package attribute

import (
	"net/netip"
	"time"

	"github.com/google/uuid"

	"berth/internal/network"
)

// The types of this file are the objects in OpenDaylight's northbound API. They contain all attributes of the
// Networking API, including the attributes that only administrators see.

type networkByController struct {
	ID              uuid.UUID   `json:"id"`
	Name            string      `json:"name"`
	Description     string      `json:"description"`
	TenantID        string      `json:"tenant_id"`
	ProjectID       string      `json:"project_id"`
	Status          string      `json:"status"`
	AdminStateUp    bool        `json:"admin_state_up"`
	Shared          bool        `json:"shared"`
	External        bool        `json:"router:external"`
	MTU             int         `json:"mtu"`
	PortSecurity    bool        `json:"port_security_enabled"`
	Type            string      `json:"provider:network_type"`
	PhysicalNetwork *string     `json:"provider:physical_network"`
	Segment         *int        `json:"provider:segmentation_id"`
	Subnets         []uuid.UUID `json:"subnets"`
	stamps
}

type subnetByController struct {
	ID          uuid.UUID       `json:"id"`
	NetworkID   uuid.UUID       `json:"network_id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	TenantID    string          `json:"tenant_id"`
	ProjectID   string          `json:"project_id"`
	IPVersion   int             `json:"ip_version"`
	CIDR        netip.Prefix    `json:"cidr"`
	Gateway     *netip.Addr     `json:"gateway_ip"`
	DHCP        bool            `json:"enable_dhcp"`
	Pools       []network.Pool  `json:"allocation_pools"`
	DNS         []string        `json:"dns_nameservers"`
	Routes      []network.Route `json:"host_routes"`
	RAMode      *string         `json:"ipv6_ra_mode"`
	AddressMode *string         `json:"ipv6_address_mode"`
	Pool        *string         `json:"subnetpool_id"`
	stamps
}

type trunkByController struct {
	ID           uuid.UUID         `json:"id"`
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	TenantID     string            `json:"tenant_id"`
	ProjectID    string            `json:"project_id"`
	AdminStateUp bool              `json:"admin_state_up"`
	Status       string            `json:"status"`
	PortID       uuid.UUID         `json:"port_id"`
	Subports     []network.Subport `json:"sub_ports"`
	stamps
}

type groupByController struct {
	ID          uuid.UUID `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	TenantID    string    `json:"tenant_id"`
	ProjectID   string    `json:"project_id"`
	Stateful    bool      `json:"stateful"`
	stamps
}

type ruleByController struct {
	ID          uuid.UUID  `json:"id"`
	GroupID     uuid.UUID  `json:"security_group_id"`
	Description string     `json:"description"`
	TenantID    string     `json:"tenant_id"`
	ProjectID   string     `json:"project_id"`
	Direction   string     `json:"direction"`
	EtherType   string     `json:"ethertype"`
	Protocol    *string    `json:"protocol"`
	PortMin     *int       `json:"port_range_min"`
	PortMax     *int       `json:"port_range_max"`
	RemoteIP    *string    `json:"remote_ip_prefix"`
	RemoteGroup *uuid.UUID `json:"remote_group_id"`
	stamps
}

type stamps struct {
	Revision  int64    `json:"revision_number"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
	Tags      []string `json:"tags"`
}

func stamped(revision int64, created, updated time.Time, tags []string) stamps {
	return stamps{revision, timestamp(created), timestamp(updated), tags}
}

// NetworkController returns the network as OpenDaylight's northbound API expects it.
func NetworkController(n network.Network) any {
	return networkByController{
		ID:              n.ID,
		Name:            n.Name,
		Description:     n.Description,
		TenantID:        n.Project,
		ProjectID:       n.Project,
		Status:          network.Active,
		AdminStateUp:    n.AdminUp,
		Shared:          n.Shared,
		External:        n.External,
		MTU:             n.MTU,
		PortSecurity:    n.PortSecurity,
		Type:            n.Type,
		PhysicalNetwork: orNull(n.PhysicalNetwork),
		Segment:         n.Segment,
		Subnets:         n.Subnets,
		stamps:          stamped(n.Revision, n.CreatedAt, n.UpdatedAt, n.Tags),
	}
}

// SubnetController returns the subnet as OpenDaylight's northbound API expects it.
func SubnetController(s network.Subnet) any {
	o := subnetByController{
		ID:          s.ID,
		NetworkID:   s.Network,
		Name:        s.Name,
		Description: s.Description,
		TenantID:    s.Project,
		ProjectID:   s.Project,
		IPVersion:   s.Version(),
		CIDR:        s.CIDR,
		DHCP:        s.DHCP,
		Pools:       s.Pools,
		DNS:         s.DNS,
		Routes:      s.Routes,
		RAMode:      orNull(s.RAMode),
		AddressMode: orNull(s.AddressMode),
		stamps:      stamped(s.Revision, s.CreatedAt, s.UpdatedAt, s.Tags),
	}
	if s.Gateway.IsValid() {
		o.Gateway = &s.Gateway
	}
	return o
}

// TrunkController returns the trunk as OpenDaylight's northbound API expects it.
func TrunkController(t network.Trunk) any {
	return trunkByController{
		ID:           t.ID,
		Name:         t.Name,
		Description:  t.Description,
		TenantID:     t.Project,
		ProjectID:    t.Project,
		AdminStateUp: t.AdminUp,
		Status:       t.Status,
		PortID:       t.Port,
		Subports:     t.Subports,
		stamps:       stamped(t.Revision, t.CreatedAt, t.UpdatedAt, t.Tags),
	}
}

// GroupController returns the security group as OpenDaylight's northbound API expects it.
func GroupController(g network.SecurityGroup) any {
	return groupByController{
		ID:          g.ID,
		Name:        g.Name,
		Description: g.Description,
		TenantID:    g.Project,
		ProjectID:   g.Project,
		Stateful:    g.Stateful,
		stamps:      stamped(g.Revision, g.CreatedAt, g.UpdatedAt, g.Tags),
	}
}

// RuleController returns the security group rule as OpenDaylight's northbound API expects it.
func RuleController(r network.SecurityRule) any {
	o := ruleByController{
		ID:          r.ID,
		GroupID:     r.Group,
		Description: r.Description,
		TenantID:    r.Project,
		ProjectID:   r.Project,
		Direction:   r.Direction,
		EtherType:   r.EtherType,
		Protocol:    orNull(r.Protocol),
		PortMin:     r.PortMin,
		PortMax:     r.PortMax,
		RemoteGroup: r.RemoteGroup,
		stamps:      stamped(r.Revision, r.CreatedAt, r.UpdatedAt, []string{}),
	}
	if r.RemoteIP.IsValid() {
		prefix := r.RemoteIP.String()
		o.RemoteIP = &prefix
	}
	return o
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
