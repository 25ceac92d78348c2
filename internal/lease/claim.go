package lease

// Claim is what a reservation holds, as the cloud has to know it.
type Claim struct {
	Reservation
	Project  string
	Servers  []ClaimedHost // the hosts that it has, or that its instances are on
	Floating []Address     // the floating IPs that it has
}

// ClaimedHost is a host by the name of its compute service.
type ClaimedHost struct {
	Service string
	Slots   int
}

// Mark is what the cloud calls a claim, once it knows it.
type Mark struct {
	Shape         int64 // of the claim that was told
	AggregateID   *int64
	ServerGroupID string
}
