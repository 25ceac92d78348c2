package lease

import "strings"

// Hypervisor is a hypervisor as Nova describes it.
type Hypervisor struct {
	ID string
	// name of the hypervisor, and of its root provider in Placement: often an FQDN, or the UUID of an Ironic
	// node
	Hostname string
	// name of the compute service's host, as aggregates contain it; empty: unknown, and Hostname is used
	Service          string
	Type             string
	Version          int
	CPUInfo          string
	AvailabilityZone string // empty: not known
	Up               bool   // up and enabled
}

// ReservationZonePrefix is the prefix of the names of availability zones that exist only while a reservation
// is active.
const ReservationZonePrefix = "blazar_"

// FindHypervisor returns the hypervisor that a client calls `name`. The name is the hypervisor's hostname,
// its ID, the host of its compute service, or a part of its hostname that no other hostname contains.
func FindHypervisor(all []Hypervisor, name string) (Hypervisor, error) {
	for _, same := range []func(Hypervisor) bool{
		func(h Hypervisor) bool { return h.Hostname == name },
		func(h Hypervisor) bool { return h.ID == name },
		func(h Hypervisor) bool { return h.Service == name },
		func(h Hypervisor) bool { return strings.Contains(h.Hostname, name) },
	} {
		var found []Hypervisor
		for _, h := range all {
			if same(h) {
				found = append(found, h)
			}
		}
		switch {
		case name == "" || len(found) == 0:
		case len(found) > 1:
			return Hypervisor{}, Faultf(AmbiguousHost, "Multiple hosts found matching '%s': %s, %s…",
				name, found[0].Hostname, found[1].Hostname)
		case found[0].Service == "":
			return Hypervisor{}, Faultf(UnknownHost,
				"Host '%s' not found! Nova names no compute service for this hypervisor.", name)
		default:
			return found[0], nil
		}
	}
	return Hypervisor{}, Faultf(UnknownHost,
		"Host '%s' not found! Nova has no hypervisor with this hostname, ID or compute service.", name)
}
