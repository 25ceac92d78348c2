package lease

// ReadingsAfterOutage is the number of readings in a row that must show a hypervisor as silent until its host
// fails, after too many were silent together. When Nova has recovered, its first answers can still show a few
// healthy hypervisors as silent. Otherwise, one reading is enough.
const ReadingsAfterOutage = 3

// HostStates is the result of a reading of the states of the hypervisors.
type HostStates struct {
	Failed    []string // names of the hosts that have failed since the last reading
	Recovered []string // names of the hosts that had failed and are up again
	// Suspended is the number of hosts that are silent and do not fail, because too many are silent together.
	Suspended int
}

// TooManySilent reports whether so many of the hosts are silent together that Nova has probably failed, and
// not the hosts: Nova shows every hypervisor as down while its message queue or its database stalls for a
// minute. Replacing the hosts would take healthy hosts from running leases.
func TooManySilent(silent, hosts int) bool { return silent > max(2, hosts/4) }
