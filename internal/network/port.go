package network

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Port statuses.
const (
	Active = "ACTIVE"
	Down   = "DOWN"
)

// VIF types: what binding a port to a host came to.
const (
	VIFUnbound = "unbound"
	VIFFailed  = "binding_failed"
	VIFOVS     = "ovs"
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
	ID           uuid.UUID
	Network      uuid.UUID
	Project      string
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
	PortSecurity bool
	Blocks       []Block
	Ignored      int64
	Revision     int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// PortChange is what a request says about a port; nil means nothing.
type PortChange struct {
	Network      *uuid.UUID
	Project      *string
	Name         *string
	Description  *string
	AdminUp      *bool
	MAC          *string
	Fixed        *[]Fixed
	DeviceID     *string
	DeviceOwner  *string
	Host         *string
	VNIC         *string
	Profile      json.RawMessage
	PortSecurity *bool
}

// NewPort is a port as a request describes it, with the defaults for what it does not say. It has no addresses
// and is not bound yet.
func NewPort(id uuid.UUID, c PortChange) Port {
	return Port{ID: id, AdminUp: true, VNIC: "normal", Profile: json.RawMessage(`{}`), VIF: VIFUnbound,
		PortSecurity: true, Status: Down}.With(c)
}

// With is the port after the change, apart from its addresses, binding and blocks, which others decide.
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
	if c.Profile != nil {
		p.Profile = c.Profile
	}
	return p
}

// Bound tells whether the port is bound to its host.
func (p Port) Bound() bool { return p.VIF != VIFUnbound && p.VIF != VIFFailed }

// Bind is the VIF type that the port has on its host, given whether an Open vSwitch agent is registered there.
func (p Port) Bind(agent bool) string {
	switch {
	case p.Host == "":
		return VIFUnbound
	case agent && p.wireable():
		return VIFOVS
	default:
		return VIFFailed
	}
}

// wireable tells whether Open vSwitch can wire the kind of interface that the port asks for.
func (p Port) wireable() bool {
	switch p.VNIC {
	case "normal", "vdpa":
		return true
	case "direct":
		var profile struct{ Capabilities []string }
		return json.Unmarshal(p.Profile, &profile) == nil && slices.Contains(profile.Capabilities, "switchdev")
	default:
		return false
	}
}

// NovaEventFor is the external event that a transition of the port's status means to Nova; ok is false if it
// means nothing, or if the port is not a server's.
func (p Port) NovaEventFor(from, to string) (e NovaEvent, ok bool) {
	switch {
	case from != Active && to == Active:
		return p.novaEvent("network-vif-plugged", "completed")
	case from == Active && to == Down:
		return p.novaEvent("network-vif-unplugged", "completed")
	default:
		return NovaEvent{}, false
	}
}

// NovaEventForDelete is the external event of the port's deletion.
func (p Port) NovaEventForDelete() (NovaEvent, bool) { return p.novaEvent("network-vif-deleted", "") }

func (p Port) novaEvent(name, status string) (NovaEvent, bool) {
	server, err := uuid.Parse(p.DeviceID)
	if err != nil || !strings.HasPrefix(p.DeviceOwner, "compute:") {
		return NovaEvent{}, false
	}
	return NovaEvent{Server: server.String(), Name: name, Status: status, Tag: p.ID.String()}, true
}
