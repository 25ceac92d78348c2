package lease

// Claim is a reservation with all that Nova and Neutron have to know about its resources.
type Claim struct {
	Reservation
	Project  string
	Servers  []ClaimedHost // hosts of the reservation, or of its instances
	Floating []Address     // floating IPs of the reservation
}

// ClaimedHost is a host, identified by the name of its Nova compute service.
type ClaimedHost struct {
	Service string
	Slots   int
}

// Mark holds the IDs of what was created in Nova for a reservation.
type Mark struct {
	Shape         int64 // revision of the reservation that Nova and Neutron have
	AggregateID   *int64
	ServerGroupID string
}
