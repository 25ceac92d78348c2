package network

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// TrunkDegraded is the status of a trunk with failed subports.
const TrunkDegraded = "DEGRADED"

// DeviceOwnerSubport is the device_owner of subports.
const DeviceOwnerSubport = "trunk:subport"

// Trunk is a Neutron trunk: its parent port carries the traffic of its subports.
type Trunk struct {
	ID          uuid.UUID
	Project     string
	Name        string
	Description string
	AdminUp     bool // if false, the subports of the trunk cannot be changed
	Port        uuid.UUID
	Status      string // derived from the statuses of the trunk's ports
	Reason      string // why the trunk is not ACTIVE, apart from its blocks; empty if only blocks keep it
	Blocks      []Block
	Subports    []Subport
	Tags        []string
	Revision    int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Subport is a port on a trunk, with the segmentation ID that identifies the port's frames.
type Subport struct {
	Port    uuid.UUID `json:"port_id"`
	Type    string    `json:"segmentation_type"`
	Segment int       `json:"segmentation_id"`
}

// InheritSegmentation is the segmentation type in a request which says that a subport uses the segmentation
// of the subport's own network.
const InheritSegmentation = "inherit"

// ForTrunk returns the subport with an explicit segmentation, or a fault. The parameter `n` is the network of
// the subport, and the parameter `parent` is the network of the trunk's parent port.
func (s Subport) ForTrunk(trunk uuid.UUID, n, parent Network) (Subport, error) {
	if n.MTU > parent.MTU {
		return s, Faultf(SubportMTU, "MTU %d of subport %s cannot be greater than MTU %d of trunk %s.",
			n.MTU, s.Port, parent.MTU, trunk)
	}
	if s.Type != InheritSegmentation {
		return s, nil
	}
	if n.Type != VLAN || n.Segment == nil {
		return s, invalidInput("Unknown segmentation_type '%s'.", n.Type)
	}
	s.Type, s.Segment = VLAN, *n.Segment
	return s, nil
}

// TrunkDetails is the attribute trunk_details of a parent port.
type TrunkDetails struct {
	Trunk    uuid.UUID
	Subports []SubportDetails
}

// SubportDetails is a subport within trunk_details.
type SubportDetails struct {
	Subport
	MAC string `json:"mac_address"`
}

// maxBridgeName is the maximum length of a trunk bridge name: the maximum length of a Linux device name,
// minus the suffix that agents append.
const maxBridgeName = 14

// BridgeName returns the name of the Open vSwitch bridge of the trunk.
func (c TrunkDetails) BridgeName() string { return ("tbr-" + c.Trunk.String())[:maxBridgeName] }

// TrunkChange contains the attributes of a trunk that a request sets; an attribute whose field is nil does
// not change.
type TrunkChange struct {
	Project     *string
	Name        *string
	Description *string
	AdminUp     *bool
	Port        *uuid.UUID
	Subports    *[]Subport
	Tags        *[]string
}

// NewTrunk returns the trunk that a create request describes, without subports.
func NewTrunk(id uuid.UUID, c TrunkChange) Trunk {
	t := Trunk{ID: id, AdminUp: true, Tags: []string{}}
	set(&t.Port, c.Port)
	return t.With(c)
}

// With returns the trunk after the change c. With does not change the parent port and the subports of the
// trunk.
func (t Trunk) With(c TrunkChange) Trunk {
	set(&t.Project, c.Project)
	set(&t.Name, c.Name)
	set(&t.Description, c.Description)
	set(&t.AdminUp, c.AdminUp)
	set(&t.Tags, c.Tags)
	return t
}

// CheckEnabled returns a fault if the trunk is disabled. A disabled trunk cannot be deleted, and its subports
// cannot be changed.
func (t Trunk) CheckEnabled() error {
	if t.AdminUp {
		return nil
	}
	return Faultf(TrunkDisabled, "Trunk %s is currently disabled.", t.ID)
}

// CheckAddSubports returns a fault if the subports cannot be added to the trunk. CheckAddSubports does not
// check whether a subport already belongs to another trunk.
func (t Trunk) CheckAddSubports(subports []Subport) error {
	switch {
	case len(subports) == 0:
		return nil
	case t.Status == Errored:
		return Faultf(TrunkErrored,
			"Trunk %s is in error state. Attempt to resolve the error condition before proceeding.",
			t.ID)
	}
	all := slices.Clone(t.Subports)
	for _, s := range subports {
		if s.Port == t.Port {
			return Faultf(ParentInUse,
				"Port %s is currently in use and is not eligible for use as a parent port.", s.Port)
		}
		for _, o := range all {
			if o.Port == s.Port {
				return Faultf(TrunkPortInUse, "Port %s is in use by another trunk.", s.Port)
			}
			if o.Type == s.Type && o.Segment == s.Segment {
				return Faultf(
					DuplicateSubport,
					"segmentation_type %s and segmentation_id %d already in use on trunk %s.",
					s.Type, s.Segment, t.ID,
				)
			}
		}
		all = append(all, s)
	}
	return nil
}

// CheckRemoveSubports returns a fault if the subports cannot be removed from the trunk.
func (t Trunk) CheckRemoveSubports(ports []uuid.UUID) error {
	if err := t.CheckEnabled(); err != nil {
		return err
	}
	for _, id := range ports {
		if !slices.ContainsFunc(t.Subports, func(s Subport) bool { return s.Port == id }) {
			return Faultf(SubportNotFound, "SubPort %s on trunk %s could not be found.", id, t.ID)
		}
	}
	return nil
}

// TrunkPort is the parent port or a subport of a trunk, with the attributes that the trunk's status depends
// on.
type TrunkPort struct {
	ID      uuid.UUID `json:"-"`
	Status  string    `json:"status"`
	VIF     string    `json:"vif"`
	AdminUp bool      `json:"admin_up"`
}

// TrunkStatus returns the status of a trunk. The trunk is DOWN if the parent port is not bound or is
// administratively down. The trunk is ERROR if the parent port is in ERROR or the binding of a subport
// failed; otherwise the trunk is DEGRADED if a subport is in ERROR. In all other cases, the trunk is ACTIVE
// if every port of the trunk with admin_state_up is ACTIVE, and it is BUILD or DOWN if one of these ports is
// not ACTIVE. A blocked trunk is BUILD instead of ACTIVE.
func TrunkStatus(parent TrunkPort, subports []TrunkPort, blocked bool) string {
	anyPort := func(is func(TrunkPort) bool) bool { return is(parent) || slices.ContainsFunc(subports, is) }
	switch {
	case parent.VIF == VIFUnbound || parent.VIF == VIFFailed || !parent.AdminUp:
		return Down
	case parent.Status == Errored || slices.ContainsFunc(subports, func(m TrunkPort) bool { return m.VIF == VIFFailed }):
		return Errored
	case anyPort(func(m TrunkPort) bool { return m.Status == Errored }):
		return TrunkDegraded
	case !anyPort(func(m TrunkPort) bool { return m.AdminUp && m.Status != Active }) && !blocked:
		return Active
	case blocked || anyPort(func(m TrunkPort) bool { return m.Status == Build }):
		return Build
	default:
		return Down
	}
}

// SubportHost returns the host to which the subports of the port's trunk must be bound: during a live
// migration the target host, otherwise the port's current host.
func (p Port) SubportHost() string {
	if to := p.migratingTo(); to != "" && p.Host != "" {
		return to
	}
	return p.Host
}
