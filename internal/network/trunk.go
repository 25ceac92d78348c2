package network

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Degraded is the status of a trunk of which some subports have failed.
const Degraded = "DEGRADED"

// SubportOwner is the device_owner of a trunk's subports.
const SubportOwner = "trunk:subport"

// Trunk carries the traffic of several ports, its subports, over one, its parent.
type Trunk struct {
	ID          uuid.UUID
	Project     string
	Name        string
	Description string
	AdminUp     bool // its subports may change
	Port        uuid.UUID
	Status      string // follows from what its ports are
	Subports    []Subport
	Tags        []string
	Revision    int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Subport is a port on a trunk, and by what its frames are told apart there.
type Subport struct {
	Port    uuid.UUID `json:"port_id"`
	Type    string    `json:"segmentation_type"`
	Segment int       `json:"segmentation_id"`
}

// Inherit is the segmentation type of a subport, in a request, that is told apart on its trunk as its network is elsewhere.
const Inherit = "inherit"

// On is the subport, of a port on network n, on a trunk whose parent is on the other network; or the fault of that.
func (s Subport) On(trunk uuid.UUID, n, parent Network) (Subport, error) {
	if n.MTU > parent.MTU {
		return s, Faultf(SubportMTU, "MTU %d of subport %s cannot be greater than MTU %d of trunk %s.", n.MTU, s.Port, parent.MTU, trunk)
	}
	if s.Type != Inherit {
		return s, nil
	}
	if n.Type != VLAN || n.Segment == nil {
		return s, invalid("Unknown segmentation_type '%s'.", n.Type)
	}
	s.Type, s.Segment = VLAN, *n.Segment
	return s, nil
}

// Carrying is the trunk whose parent a port is, and what comes over it.
type Carrying struct {
	Trunk    uuid.UUID
	Subports []Carried
}

// Carried is a subport as whoever plugs in its trunk's parent has to know it.
type Carried struct {
	Subport
	MAC string `json:"mac_address"`
}

// bridgeName is how long the name of a device may be that Linux accepts, less what its agents add.
const bridgeName = 14

// Bridge is the name of the bridge that the trunk has to itself, where Open vSwitch wires its parent.
func (c Carrying) Bridge() string { return ("tbr-" + c.Trunk.String())[:bridgeName] }

// TrunkChange is what a request says about a trunk; nil means nothing.
type TrunkChange struct {
	Project     *string
	Name        *string
	Description *string
	AdminUp     *bool
	Port        *uuid.UUID
	Subports    *[]Subport
	Tags        *[]string
}

// NewTrunk is a trunk as a request describes it, without its subports.
func NewTrunk(id uuid.UUID, c TrunkChange) Trunk {
	t := Trunk{ID: id, AdminUp: true, Tags: []string{}}
	set(&t.Port, c.Port)
	return t.With(c)
}

// With is the trunk after the change, apart from its ports.
func (t Trunk) With(c TrunkChange) Trunk {
	set(&t.Project, c.Project)
	set(&t.Name, c.Name)
	set(&t.Description, c.Description)
	set(&t.AdminUp, c.AdminUp)
	set(&t.Tags, c.Tags)
	return t
}

// Extend checks whether these subports can be added to the trunk. That they are free, others find out.
func (t Trunk) Extend(subports []Subport) error {
	switch {
	case len(subports) == 0:
		return nil
	case !t.AdminUp:
		return Faultf(TrunkDisabled, "Trunk %s is currently disabled.", t.ID)
	case t.Status == Errored:
		return Faultf(TrunkErrored, "Trunk %s is in error state. Attempt to resolve the error condition before proceeding.", t.ID)
	}
	all := slices.Clone(t.Subports)
	for _, s := range subports {
		if s.Port == t.Port {
			return Faultf(ParentInUse, "Port %s is currently in use and is not eligible for use as a parent port.", s.Port)
		}
		for _, o := range all {
			if o.Port == s.Port {
				return Faultf(TrunkPortInUse, "Port %s is in use by another trunk.", s.Port)
			}
			if o.Type == s.Type && o.Segment == s.Segment {
				return Faultf(SegmentTaken, "segmentation_type %s and segmentation_id %d already in use on trunk %s.", s.Type, s.Segment, t.ID)
			}
		}
		all = append(all, s)
	}
	return nil
}

// Reduce checks whether these subports can be taken from the trunk.
func (t Trunk) Reduce(ports []uuid.UUID) error {
	if !t.AdminUp {
		return Faultf(TrunkDisabled, "Trunk %s is currently disabled.", t.ID)
	}
	for _, id := range ports {
		if !slices.ContainsFunc(t.Subports, func(s Subport) bool { return s.Port == id }) {
			return Faultf(SubportNotFound, "SubPort %s on trunk %s could not be found.", id, t.ID)
		}
	}
	return nil
}

// Member is a trunk's parent or subport, as far as the trunk depends on it.
type Member struct {
	Status  string `json:"status"`
	VIF     string `json:"vif"`
	AdminUp bool   `json:"admin_up"`
}

// TrunkStatus is what a trunk with these ports is: ACTIVE if and only if all of them are that are to be up. It is ERROR
// when a subport cannot be bound to the parent's host, and DEGRADED when one was given up.
func TrunkStatus(parent Member, subports []Member) string {
	some := func(is func(Member) bool) bool { return is(parent) || slices.ContainsFunc(subports, is) }
	switch {
	case parent.VIF == VIFUnbound || parent.VIF == VIFFailed || !parent.AdminUp:
		return Down
	case parent.Status == Errored || slices.ContainsFunc(subports, func(m Member) bool { return m.VIF == VIFFailed }):
		return Errored
	case some(func(m Member) bool { return m.Status == Errored }):
		return Degraded
	case !some(func(m Member) bool { return m.AdminUp && m.Status != Active }):
		return Active
	case some(func(m Member) bool { return m.Status == Build }):
		return Build
	default:
		return Down
	}
}

// Site is the host that the subports of a port's trunk belong on: the port's own, or the one to which its server is
// moving.
func (p Port) Site() string {
	if to := p.migratingTo(); to != "" && p.Host != "" {
		return to
	}
	return p.Host
}
