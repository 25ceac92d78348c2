package network

import (
	"time"

	"github.com/google/uuid"
)

// Network is a Neutron network: an isolated layer-2 segment.
type Network struct {
	ID          uuid.UUID
	Project     string
	Name        string
	Description string
	AdminUp     bool
	Shared      bool // every project may create ports on the network
	// every project may create ports on the network, but may not see the network's subnets
	External        bool
	MTU             int
	PortSecurity    bool
	Type            string // provider:network_type: vxlan, vlan, flat, local
	PhysicalNetwork string // provider:physical_network; empty for tunnels
	Segment         *int   // provider:segmentation_id: VNI or VLAN ID
	Subnets         []uuid.UUID
	ZoneHints       []string // availability zones whose DHCP agents may serve the network; empty: every zone
	Zones           []string // availability zones of the DHCP agents that host the network
	Tags            []string
	Revision        int64
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// NetworkChange holds the attributes that a request to update a network sets. If a field of NetworkChange is
// nil, the request does not change the attribute.
type NetworkChange struct {
	Project         *string
	Name            *string
	Description     *string
	AdminUp         *bool
	Shared          *bool
	External        *bool
	MTU             *int // 0: the largest MTU of the network type
	PortSecurity    *bool
	Type            *string
	PhysicalNetwork *string
	Segment         *int
	Tags            *[]string
	ZoneHints       *[]string
}

// Provider network types.
const (
	VXLAN = "vxlan"
	VLAN  = "vlan"
	Flat  = "flat"
	Local = "local"
)

// NewNetwork returns the network that a create request describes, with Neutron's defaults.
func NewNetwork(id uuid.UUID, c NetworkChange) Network {
	return Network{
		ID:           id,
		AdminUp:      true,
		PortSecurity: true,
		Type:         VXLAN,
		Tags:         []string{},
		ZoneHints:    []string{},
	}.With(c)
}

// ZoneNotFound returns the fault for an availability zone that no DHCP agent reports.
func ZoneNotFound(zone string) *Fault {
	return Faultf(AvailabilityZoneNotFound, "AvailabilityZone %s could not be found.", zone)
}

// OpenToAllProjects reports whether other projects may create ports on the network.
func (n Network) OpenToAllProjects() bool { return n.Shared || n.External }

// With returns the network after the change.
func (n Network) With(c NetworkChange) Network {
	set(&n.Project, c.Project)
	set(&n.Name, c.Name)
	set(&n.Description, c.Description)
	set(&n.AdminUp, c.AdminUp)
	set(&n.Shared, c.Shared)
	set(&n.External, c.External)
	set(&n.MTU, c.MTU)
	set(&n.PortSecurity, c.PortSecurity)
	set(&n.Type, c.Type)
	set(&n.PhysicalNetwork, c.PhysicalNetwork)
	if c.Segment != nil {
		n.Segment = c.Segment
	}
	set(&n.Tags, c.Tags)
	set(&n.ZoneHints, c.ZoneHints)
	return n
}

// Check returns a fault if the provider attributes of a new network contradict each other, or if the
// network's physical network has no VLANs.
func (n Network) Check(vlans VLANRanges) error {
	limit := 0
	switch n.Type {
	case VXLAN:
		limit = 1<<24 - 1
	case VLAN:
		limit = MaxVLAN
	case Flat, Local:
	default:
		return Faultf(InvalidInput,
			"Invalid input for operation: network_type value '%s' not supported.", n.Type)
	}
	switch {
	case n.Type == Flat && n.PhysicalNetwork == "":
		return Faultf(InvalidInput,
			"Invalid input for operation: physical_network required for %s provider network.", n.Type)
	case n.Type != Flat && n.Type != VLAN && n.PhysicalNetwork != "":
		return Faultf(InvalidInput,
			"Invalid input for operation: provider:physical_network specified for %s network.", n.Type)
	case n.Type == VLAN && n.PhysicalNetwork != "" && len(vlans.On(n.PhysicalNetwork)) == 0:
		return Faultf(InvalidInput,
			"Invalid input for operation: physical_network '%s' unknown for VLAN provider network.",
			n.PhysicalNetwork)
	case n.Type == VLAN && n.PhysicalNetwork == "" && n.Segment != nil:
		return Faultf(
			InvalidInput,
			"Invalid input for operation: segmentation_id requires physical_network for VLAN provider network.",
		)
	case n.Segment != nil && limit == 0:
		return Faultf(InvalidInput,
			"Invalid input for operation: segmentation_id prohibited for %s provider network.", n.Type)
	case n.Segment != nil && (*n.Segment < 1 || *n.Segment > limit):
		return Faultf(InvalidInput,
			"Invalid input for operation: segmentation_id out of range (1 through %d).", limit)
	}
	return nil
}

// NamedSegments returns the segmentation IDs that the drafts of networks of a type name, and for each of them
// the name of its physical network.
func NamedSegments(drafts []NetworkChange, typ string) (physicalNetworks []string, segments []int) {
	physicalNetworks, segments = []string{}, []int{}
	for _, c := range drafts {
		if n := NewNetwork(uuid.Nil, c); n.Type == typ && n.Segment != nil {
			physicalNetworks = append(physicalNetworks, n.PhysicalNetwork)
			segments = append(segments, *n.Segment)
		}
	}
	return physicalNetworks, segments
}

// SegmentInUseFault returns the fault that says that another network already uses the segmentation ID of
// network n.
func (n Network) SegmentInUseFault() error {
	if n.Type == VLAN {
		return Faultf(
			VLANInUse, "Unable to create the network. The VLAN %d on physical network %s is in use.",
			*n.Segment, n.PhysicalNetwork,
		)
	}
	return Faultf(TunnelInUse, "Unable to create the network. The tunnel ID %d is in use.", *n.Segment)
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
