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
	Build   = "BUILD" // an agent is at work on it
	Errored = "ERROR" // an entity did not report in time, and that is held to be fatal
)

// Address is one of a port's addresses.
type Address struct {
	Subnet uuid.UUID  `json:"subnet"`
	IP     netip.Addr `json:"ip"`
}

// Fixed is an address that a request asks for: in a subnet, an address, or both.
type Fixed struct {
	Subnet uuid.UUID  // Nil: whichever contains IP
	IP     netip.Addr // invalid: any free one
}

// Port is a place on a network where something is plugged in.
type Port struct {
	ID             uuid.UUID
	Network        uuid.UUID
	Project        string
	Tenant         string // whom it is accounted to: the network's project where it has none of its own
	Name           string
	Description    string
	AdminUp        bool
	MAC            string
	Addresses      []Address
	DeviceID       string
	DeviceOwner    string
	Status         string
	Host           string
	VNIC           string
	Profile        json.RawMessage
	VIF            string
	Details        json.RawMessage // what a controller says to whoever plugs into the port; nil if no controller wires it
	Switch         *Switch         // of Open vSwitch, where it is another than usual; nil if it is not
	Bindings       []Binding       // besides the one on Host
	PortSecurity   bool
	AddressPairs   []AddressPair
	DHCPOptions    []DHCPOption
	Tags           []string
	SecurityGroups []uuid.UUID
	Blocks         []Block
	Ignored        int64
	Revision       int64
	Epoch          int64 // the revision in which it was last bound; work on an earlier one does not count
	CreatedAt      time.Time
	UpdatedAt      time.Time
	Carrying       *Carrying // the trunk whose parent it is; nil for none, and where nobody has asked
	Watch          Watch     // over an ACTIVE port; what a reader is told and no rule depends on
}

// Watch is what is known of the agent that wired a port and would tell that it is unplugged. Nothing if that agent lives.
type Watch struct {
	Heard  *time.Time `json:"heard"`  // when it was last heard of, if it has been silent since for too long
	Orphan bool       `json:"orphan"` // no such agent is registered any more
}

// PortChange is what a request says about a port; nil means nothing.
type PortChange struct {
	Network        *uuid.UUID
	Project        *string
	Name           *string
	Description    *string
	AdminUp        *bool
	MAC            *string
	Fixed          *[]Fixed
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
}

// NewPort is a port as a request describes it, with the defaults for what it does not say. It has no addresses
// and is not bound yet.
func NewPort(id uuid.UUID, c PortChange) Port {
	return Port{ID: id, AdminUp: true, VNIC: "normal", Profile: json.RawMessage(`{}`), VIF: VIFUnbound,
		PortSecurity: true, SecurityGroups: []uuid.UUID{}, AddressPairs: []AddressPair{}, DHCPOptions: []DHCPOption{}, Tags: []string{}, Status: Down}.With(c)
}

// With is the port after the change, apart from its addresses, extras, binding and blocks, which others decide.
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
