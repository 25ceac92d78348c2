package networkstore

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/network/attribute"
)

// The mirror types contain the attributes of an object that the controller gets: all attributes of the Networking API, including
// the attributes that only administrators see.

type networkMirror struct {
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

type subnetMirror struct {
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

type trunkMirror struct {
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

type groupMirror struct {
	ID          uuid.UUID `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	TenantID    string    `json:"tenant_id"`
	ProjectID   string    `json:"project_id"`
	Stateful    bool      `json:"stateful"`
	stamps
}

type ruleMirror struct {
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
	const layout = "2006-01-02T15:04:05Z"
	return stamps{revision, created.UTC().Format(layout), updated.UTC().Format(layout), tags}
}

func mirrorNetwork(n network.Network, op journal.Operation) journal.Change {
	m := networkMirror{ID: n.ID, Name: n.Name, Description: n.Description, TenantID: n.Project, ProjectID: n.Project,
		Status: network.Active, AdminStateUp: n.AdminUp, Shared: n.Shared, External: n.External, MTU: n.MTU,
		PortSecurity: n.PortSecurity, Type: n.Type, PhysicalNetwork: orNull(n.PhysicalNetwork), Segment: n.Segment,
		Subnets: n.Subnets, stamps: stamped(n.Revision, n.CreatedAt, n.UpdatedAt, n.Tags)}
	return mirrored("network", n.ID, op, m, n.Project, n.Name)
}

func mirrorSubnet(s network.Subnet, op journal.Operation) journal.Change {
	m := subnetMirror{ID: s.ID, NetworkID: s.Network, Name: s.Name, Description: s.Description, TenantID: s.Project,
		ProjectID: s.Project, IPVersion: s.Version(), CIDR: s.CIDR, DHCP: s.DHCP, Pools: s.Pools, DNS: s.DNS,
		Routes: s.Routes, RAMode: orNull(s.RAMode), AddressMode: orNull(s.AddressMode),
		stamps: stamped(s.Revision, s.CreatedAt, s.UpdatedAt, s.Tags)}
	if s.Gateway.IsValid() {
		m.Gateway = &s.Gateway
	}
	return mirrored("subnet", s.ID, op, m, s.Project, s.Name)
}

func mirrorPort(p network.Port, op journal.Operation) journal.Change {
	return mirrored("port", p.ID, op, attribute.PortController(p), p.Project, p.Name)
}

// mirrorPortUpdate returns the journal change of a port update, with the references of both states.
func mirrorPortUpdate(before, after network.Port) journal.Change {
	was := mirrorPort(before, journal.Update)
	return referring(mirrorPort(after, journal.Update), &was)
}

func mirrorTrunk(t network.Trunk, op journal.Operation) journal.Change {
	m := trunkMirror{ID: t.ID, Name: t.Name, Description: t.Description, TenantID: t.Project, ProjectID: t.Project, AdminStateUp: t.AdminUp,
		Status: t.Status, PortID: t.Port, Subports: t.Subports, stamps: stamped(t.Revision, t.CreatedAt, t.UpdatedAt, t.Tags)}
	return mirrored("trunk", t.ID, op, m, t.Project, t.Name)
}

func mirrorGroup(g network.SecurityGroup, op journal.Operation) journal.Change {
	m := groupMirror{ID: g.ID, Name: g.Name, Description: g.Description, TenantID: g.Project, ProjectID: g.Project, Stateful: g.Stateful,
		stamps: stamped(g.Revision, g.CreatedAt, g.UpdatedAt, g.Tags)}
	return mirrored("security_group", g.ID, op, m, g.Project, g.Name)
}

func mirrorRule(r network.SecurityRule, op journal.Operation) journal.Change {
	m := ruleMirror{ID: r.ID, GroupID: r.Group, Description: r.Description, TenantID: r.Project, ProjectID: r.Project, Direction: r.Direction,
		EtherType: r.EtherType, Protocol: orNull(r.Protocol), PortMin: r.PortMin, PortMax: r.PortMax, RemoteGroup: r.RemoteGroup,
		stamps: stamped(r.Revision, r.CreatedAt, r.UpdatedAt, []string{})}
	if r.RemoteIP.IsValid() {
		prefix := r.RemoteIP.String()
		m.RemoteIP = &prefix
	}
	return mirrored("security_group_rule", r.ID, op, m, r.Project, "")
}

// mirrored returns the journal change for an object of networkstore.
func mirrored(typ string, id uuid.UUID, op journal.Operation, mirror any, project, name string) journal.Change {
	return referring(journal.Change{Object: journal.Ref{Type: typ, ID: id.String()}, Operation: op, Data: encoded(mirror),
		Project: project, Name: name}, nil)
}

// referring adds the references of an object to the journal change of the object. referring panics if the references cannot be
// decoded, which is a programming error.
func referring(c journal.Change, before *journal.Change) journal.Change {
	c, err := c.WithReferences(before)
	if err != nil {
		panic(fmt.Sprintf("store: %s", err))
	}
	return c
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// encoded returns v as JSON. encoded panics if v cannot be encoded, which is a programming error.
func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: encode %T: %v", v, err))
	}
	return raw
}
