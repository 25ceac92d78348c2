package lease

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Resource types of reservations.
const (
	PhysicalHost    = "physical:host"
	VirtualInstance = "virtual:instance"
	FlavorInstance  = "flavor:instance"
	FloatingIP      = "virtual:floatingip"
	NetworkSegment  = "network" // type of Chameleon's version of Blazar: a network on a reserved segment
	Device          = "device"  // type of Chameleon's version of Blazar: a device
)

// ResourceType holds the rules of one resource type. The code of a resource type has four parts: its rules in
// this package, its database rows in package leasestore, its fields of the API in package blazar, and its
// Nova and Neutron objects in package cloud.
type ResourceType interface {
	// Check returns a fault if the draft of a reservation is not valid.
	Check(ReservationDraft) error
	// CheckChange returns a fault if the reservation `was` must not be changed to the draft `is`.
	CheckChange(was Reservation, is ReservationDraft) error
}

var resourceTypes = map[string]ResourceType{
	PhysicalHost:    hostType{},
	VirtualInstance: instanceType{},
	FlavorInstance:  flavorType{},
	FloatingIP:      floatingIPType{},
	NetworkSegment:  segmentType{},
	Device:          deviceType{},
}

// CheckReservation returns a fault if the draft of a reservation is not valid.
func CheckReservation(d ReservationDraft) error {
	resource, ok := resourceTypes[d.Type]
	if !ok {
		return Faultf(UnsupportedType, "The resource type %s is not supported.", d.Type)
	}
	return resource.Check(d)
}

// ReservationDraft holds the attributes that a reservation requests. The field Type determines which other
// fields of a ReservationDraft are used.
type ReservationDraft struct {
	Type                 string
	Min, Max             int    // physical:host and device
	HypervisorProperties string // physical:host; Blazar's requirement grammar
	NetworkProperties    string `json:",omitempty"` // network; the same grammar
	ResourceProperties   string // physical:host, virtual:instance, network and device; the same grammar
	BeforeEnd            string // physical:host, network and device: before_end action

	Amount   int // number of instances or floating IPs
	VCPUs    int64
	MemoryMB int64
	DiskGB   int64
	Affinity Affinity
	Flavor   *Flavor // flavor:instance: the flavor when the lease was created

	Network  uuid.UUID // virtual:floatingip: external network
	Required []netip.Addr

	NetworkName        string `json:",omitempty"` // network: name of the network that the reservation creates
	NetworkDescription string `json:",omitempty"` // network: description of this network
}

// Requirements parses the requirements of a reservation: hypervisor_properties or network_properties, and
// resource_properties.
func (d ReservationDraft) Requirements() ([]Requirement, error) {
	if d.Type == NetworkSegment {
		return HostRequirements(d.NetworkProperties, d.ResourceProperties)
	}
	return HostRequirements(d.HypervisorProperties, d.ResourceProperties)
}

// Affinity says whether the instances of a reservation must share a host or must be on different hosts.
type Affinity string

// The kinds of affinity.
const (
	AffinityNone           Affinity = ""
	AffinitySameHost       Affinity = "affinity"      // all on the same host
	AffinityDifferentHosts Affinity = "anti-affinity" // each on a different host
)

const maxAmount = 100_000

func checkAmount(n, from int) error {
	if n < from || n > maxAmount {
		return Faultf(MalformedParameter, "Malformed parameter amount: %d. It must be from %d to %d.",
			n, from, maxAmount)
	}
	return nil
}

// checkBeforeEnd returns a fault if a reservation has an unknown before_end action.
func checkBeforeEnd(d ReservationDraft) error {
	if !slices.Contains([]string{"", "default", "snapshot"}, d.BeforeEnd) {
		return Faultf(MalformedParameter, "Malformed parameter before_end")
	}
	return nil
}

// MaxRequirementsSize is the maximum length of all requirements of a reservation in their normal form, in
// bytes.
const MaxRequirementsSize = 4096

// Maximum numbers of requirements (conditions on one property). Each requirement of a new or changed lease is
// compared with every host while other requests wait for the same hosts. Requirements of users have few
// conditions, such as the node type and the name of a host.
const (
	MaxReservationRequirements = 50
	MaxLeaseRequirements       = 500
)

// checkRequirements returns a fault if the requirements of a reservation are not valid.
func checkRequirements(d ReservationDraft) error {
	d = d.normalized()
	all := d.HypervisorProperties + d.NetworkProperties + d.ResourceProperties
	if strings.ContainsRune(all, 0) {
		return Faultf(MalformedRequirements, "Malformed requirements: they contain a NUL character.")
	}
	requirements, err := d.Requirements()
	if err != nil {
		return err
	}
	if len(requirements) > MaxReservationRequirements {
		return Faultf(MalformedRequirements,
			"Malformed requirements: a reservation must not have more than %d conditions.",
			MaxReservationRequirements)
	}
	if len(all) > MaxRequirementsSize {
		return Faultf(MalformedRequirements,
			"Malformed requirements: without blanks, they must not be longer than %d bytes.",
			MaxRequirementsSize)
	}
	return nil
}

// checkLeaseRequirements returns a fault if the reservations of a lease have too many requirements together.
// The parameter `before` contains the reservations before a change: a lease that older rules allowed can
// change if it does not get more requirements.
func checkLeaseRequirements(is, before []ReservationDraft) error {
	if n := countRequirements(is); n > MaxLeaseRequirements && n > countRequirements(before) {
		return Faultf(MalformedRequirements,
			"Malformed requirements: the reservations of a lease must not have more than %d conditions together; these have %d.",
			MaxLeaseRequirements, n)
	}
	return nil
}

func countRequirements(drafts []ReservationDraft) int {
	n := 0
	for _, d := range drafts {
		all, _ := d.Requirements() // checkRequirements has refused malformed requirements
		n += len(all)
	}
	return n
}

// normalized returns the draft with its requirements in their normal form.
func (d ReservationDraft) normalized() ReservationDraft {
	for _, text := range []*string{&d.HypervisorProperties, &d.NetworkProperties, &d.ResourceProperties} {
		*text = NormalizeRequirements(*text)
	}
	return d
}
