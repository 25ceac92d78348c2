package network

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// Port statuses.
const (
	Active  = "ACTIVE"
	Down    = "DOWN"
	Build   = "BUILD" // an agent is working on the port
	Errored = "ERROR" // the deadline of a fatal block has passed
)

// Address is an IP address that is allocated to a port.
type Address struct {
	Subnet uuid.UUID  `json:"subnet"`
	IP     netip.Addr `json:"ip"`
}

// FixedIP is one entry of `fixed_ips` in a request: a subnet, an address, or both.
type FixedIP struct {
	Subnet uuid.UUID  // uuid.Nil: the subnet that contains IP
	IP     netip.Addr // invalid: any free address
}

// Port is a Neutron port: the connection of one device to a network.
type Port struct {
	ID          uuid.UUID
	Network     uuid.UUID
	NetworkType string // provider:network_type of the network
	Project     string
	// project whose quota includes the port: the network's project if the port has no project
	QuotaProject string
	Name         string
	Description  string
	AdminUp      bool
	MAC          string
	Addresses    []Address
	DeviceID     string
	DeviceOwner  string
	Status       string
	Host         string
	VNIC         string
	Profile      json.RawMessage
	VIF          string
	// binding:vif_details from a controller; nil if no controller wires the port
	ControllerVIFDetails json.RawMessage
	Switch               *Switch   // the Open vSwitch that wires the port; nil for the default switch
	Bindings             []Binding // all bindings except the binding to Host
	PortSecurity         bool
	AddressPairs         []AddressPair
	DHCPOptions          []DHCPOption
	Tags                 []string
	SecurityGroups       []uuid.UUID
	Blocks               []Block
	IgnoredReports       int64
	Revision             int64
	BindingRevision      int64 // revision of the last binding; reports on earlier revisions do not count
	CreatedAt            time.Time
	UpdatedAt            time.Time
	// the trunk whose parent is the port; nil if the port has no trunk or the trunk was not loaded
	TrunkDetails *TrunkDetails
	// health of the agent that wired an ACTIVE port; informative, no rule depends on AgentHealth
	AgentHealth AgentHealth
}

// AgentHealth says whether the agent that wired a port is silent or unregistered. A silent or unregistered
// agent cannot report that the port's device is unplugged.
type AgentHealth struct {
	// time of the agent's last heartbeat; set only if it is older than AgentDownTime
	SilentSince  *time.Time `json:"heard"`
	Unregistered bool       `json:"orphan"` // the agent is no longer registered
}

// PortChange contains the attributes of a port that a request sets; an attribute whose field is nil does not
// change.
type PortChange struct {
	Network        *uuid.UUID
	Project        *string
	Name           *string
	Description    *string
	AdminUp        *bool
	MAC            *string
	FixedIPs       *[]FixedIP
	DeviceID       *string
	DeviceOwner    *string
	Host           *string
	VNIC           *string
	Profile        json.RawMessage
	PortSecurity   *bool
	AddressPairs   *[]AddressPair
	DHCPOptions    *[]DHCPOption
	Tags           *[]string
	SecurityGroups *[]uuid.UUID
	// NeedsOpenNetwork means that the requester may create the port only because the network is open to all
	// projects.
	NeedsOpenNetwork bool
	// Member is the project of a requester who is neither an administrator nor a service; nil: the
	// requester is one of them, or an agent. A member may not make the port that of a DHCP agent or of a
	// router, because berth does not know to which projects the routers of the controller belong, and gets
	// few addresses on networks of other projects.
	Member *string
}

// NewPort returns the port that a create request describes, with Neutron's defaults. NewPort does not
// allocate addresses and does not bind the port.
func NewPort(id uuid.UUID, c PortChange) Port {
	return Port{
		ID:             id,
		AdminUp:        true,
		VNIC:           "normal",
		Profile:        json.RawMessage(`{}`),
		VIF:            VIFUnbound,
		PortSecurity:   true,
		SecurityGroups: []uuid.UUID{},
		AddressPairs:   []AddressPair{},
		DHCPOptions:    []DHCPOption{},
		Tags:           []string{},
		Status:         Down,
	}.With(c)
}

// With returns the port after the change c, but applies only the simple attributes of c: it does not change
// the port's addresses, extensions, binding and blocks.
func (p Port) With(c PortChange) Port {
	set(&p.Network, c.Network)
	set(&p.Project, c.Project)
	set(&p.Name, c.Name)
	set(&p.Description, c.Description)
	set(&p.AdminUp, c.AdminUp)
	set(&p.MAC, c.MAC)
	set(&p.DeviceID, c.DeviceID)
	set(&p.DeviceOwner, c.DeviceOwner)
	set(&p.Host, c.Host)
	set(&p.VNIC, c.VNIC)
	set(&p.PortSecurity, c.PortSecurity)
	set(&p.Tags, c.Tags)
	if c.Profile != nil {
		p.Profile = c.Profile
	}
	return p
}
