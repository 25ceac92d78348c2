package lease

import (
	"net/netip"
	"strings"

	"github.com/google/uuid"
)

// The types of resources that can be reserved.
const (
	PhysicalHost    = "physical:host"
	VirtualInstance = "virtual:instance"
	FlavorInstance  = "flavor:instance"
	FloatingIP      = "virtual:floatingip"
)

// Resource is the rules of one type of resource. A type is a plug-in of three parts: its rules are here, its rows in
// store, and what it is in the cloud, in cloud.
type Resource interface {
	// Check tells what is wrong with what is asked for; nil if nothing is.
	Check(ReservationDraft) error
	// Change tells why a reservation, of which the lease's dates may change too, cannot become what is asked for;
	// nil if it can.
	Change(was Reservation, is ReservationDraft) error
}

var resources = map[string]Resource{
	PhysicalHost:    hosts{},
	VirtualInstance: instances{},
	FlavorInstance:  flavors{},
	FloatingIP:      addresses{},
}

// CheckReservation tells what is wrong with what a reservation asks for; nil if nothing is.
func CheckReservation(d ReservationDraft) error {
	resource, ok := resources[d.Type]
	if !ok {
		return Refuse(UnsupportedType, "The resource type %s is not supported.", d.Type)
	}
	return resource.Check(d)
}

// ReservationDraft is what a reservation asks for. Which fields mean something is for its Type to say.
type ReservationDraft struct {
	Type                 string
	Min, Max             int    // physical:host
	HypervisorProperties string // physical:host; in the requirement grammar, see the API
	ResourceProperties   string // the same; of instances too
	BeforeEnd            string // physical:host: what happens to servers before the end

	Amount   int // of instances or addresses
	VCPUs    int64
	MemoryMB int64
	DiskGB   int64
	Affinity Affinity
	Flavor   *Flavor // flavor:instance: as it was when the lease was made

	Network  uuid.UUID // virtual:floatingip
	Required []netip.Addr
}

// Affinity is whether the instances of a reservation share hosts.
type Affinity string

// The kinds of affinity.
const (
	Anywhere Affinity = ""
	Together Affinity = "affinity"      // all on one host
	Apart    Affinity = "anti-affinity" // each on a host of its own
)

const maxAmount = 100_000

func checkAmount(n, from int) error {
	if n < from || n > maxAmount {
		return Refuse(MalformedParameter, "Malformed parameter amount: %d. It must be from %d to %d.", n, from, maxAmount)
	}
	return nil
}

// longestText is how many bytes of requirements a reservation may have.
const longestText = 16_384

// checkTexts reads a reservation's requirements.
func checkTexts(d ReservationDraft) error {
	if len(d.HypervisorProperties)+len(d.ResourceProperties) > longestText {
		return Refuse(MalformedRequirements, "Malformed requirements: they must not be longer than %d bytes.", longestText)
	}
	if strings.ContainsRune(d.HypervisorProperties+d.ResourceProperties, 0) {
		return Refuse(MalformedRequirements, "Malformed requirements: they hold a NUL character.")
	}
	_, err := Requirements(d.HypervisorProperties, d.ResourceProperties)
	return err
}
