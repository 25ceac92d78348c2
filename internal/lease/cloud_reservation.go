package lease

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// CloudReservation is a reservation together with the data that package cloud needs to change Nova and
// Neutron: the project, and the hosts, floating IPs or the network segment of the reservation.
type CloudReservation struct {
	Reservation
	// Lease is the ID of the lease. Other projects do not know it, but the ID of the reservation is in the
	// name of an availability zone, which every user can list.
	Lease        uuid.UUID
	Project      string
	ComputeHosts []ReservedHost         // hosts of the reservation, or of its instances
	FloatingIPs  []ReservableFloatingIP // floating IPs of the reservation
	Segment      Segment                // network segment of the reservation
	// NetworkBegun says that berth has begun to create a network on the segment for this reservation, and for
	// no other one since.
	NetworkBegun bool
	// FormerHosts are the hosts that healing has replaced while the lease was active.
	FormerHosts []FormerHost
	// BeforeEndAt is the due time of the before_end_lease event while the event is in progress; otherwise
	// zero.
	BeforeEndAt time.Time
	// BeforeEndRuns is how often the before_end_lease event has begun.
	BeforeEndRuns int
	// FloatingIPIDs are the Neutron IDs of the floating IPs that were created for the reservation. The
	// project can change the description and the tags of a floating IP, but not its ID.
	FloatingIPIDs []string
	// Created are the floating IPs that berth has begun to create for this reservation last, also those that
	// the reservation has given up meanwhile. CreatedByOthers are those of other reservations of the project
	// that have not ended. CreatedByOthers is set only after the reservation was read again, before something
	// is deleted.
	Created, CreatedByOthers []ReservableFloatingIP
}

// NotCreated returns the floating IPs of the reservation that berth has not begun to create.
func (c CloudReservation) NotCreated() []ReservableFloatingIP {
	return slices.DeleteFunc(slices.Clone(c.FloatingIPs), func(f ReservableFloatingIP) bool {
		return slices.ContainsFunc(c.Created, func(o ReservableFloatingIP) bool { return o.ID == f.ID })
	})
}

// NeedsNetwork reports whether the reservation has a network segment on which berth has not begun to create a
// network.
func (c CloudReservation) NeedsNetwork() bool { return c.Type == NetworkSegment && !c.NetworkBegun }

// ReservedHost is a reserved host; the field Service is the name of the host's Nova compute service.
type ReservedHost struct {
	Service string
	Slots   int
}

// FormerHost is a host that a reservation had until healing replaced it. The field Service is the name of the
// host's Nova compute service.
type FormerHost struct {
	Service string
	LeftAt  time.Time // the reservation had the host until then
}

// ErrFormerHosts means that servers of a reservation on its former hosts could not be deleted. Nova has no
// other objects of the reservation any more.
var ErrFormerHosts = errors.New("servers on former hosts of the reservation are not deleted")

// CloudIDs holds the IDs of the objects that were created in Nova or Neutron for a reservation.
type CloudIDs struct {
	Revision      int64 // revision of the reservation that Nova and Neutron have
	AggregateID   *int64
	ServerGroupID string
	NetworkID     string   // set also if an error occurred after its creation
	FloatingIPIDs []string // also those that were created before an error
}
