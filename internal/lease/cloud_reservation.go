package lease

// CloudReservation is a reservation with the data about its resources that is sent to Nova and Neutron.
type CloudReservation struct {
	Reservation
	Project      string
	ComputeHosts []ReservedHost         `json:"Servers"`  // hosts of the reservation, or of its instances
	FloatingIPs  []ReservableFloatingIP `json:"Floating"` // floating IPs of the reservation
}

// ReservedHost is a host, identified by the name of its Nova compute service.
type ReservedHost struct {
	Service string
	Slots   int
}

// CloudIDs holds the IDs of the objects that were created in Nova for a reservation.
type CloudIDs struct {
	Revision      int64 `json:"Shape"` // revision of the reservation that Nova and Neutron have
	AggregateID   *int64
	ServerGroupID string
}
