package lease

import (
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
)

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
	Silent           bool   // enabled, and Nova does not hear from the compute service
}

// ReservationZonePrefix is the prefix of the names of availability zones that exist only while a reservation
// is active.
const ReservationZonePrefix = "blazar_"

// maxHypervisorText is the maximum length of a text about a hypervisor, in bytes. Nova's columns are shorter.
const maxHypervisorText = 64 << 10

// isStorable reports whether the database can store what Nova says about the hypervisor.
func (h Hypervisor) isStorable() bool {
	for _, text := range []string{h.Hostname, h.Service, h.Type, h.CPUInfo, h.AvailabilityZone} {
		if len(text) > maxHypervisorText || strings.Contains(text, "\x00") {
			return false
		}
	}
	return h.Version >= math.MinInt32 && h.Version <= math.MaxInt32
}

// isBareMetalNode reports whether the hypervisor is a node of Ironic. Nova gives such a hypervisor the UUID
// of the node as its hostname.
func (h Hypervisor) isBareMetalNode() bool {
	return len(h.Hostname) == len(uuid.UUID{}.String()) && uuid.Validate(h.Hostname) == nil
}

// TrustedHypervisors returns the hypervisors from which berth learns about hosts, and the number of the
// others. The compute service of a hypervisor chooses the values and the hostname that Nova shows. So one
// hypervisor must neither prevent that berth stores the values of the others, nor speak for the host of
// another one: if several hypervisors have the same hostname, berth learns from none of them.
//
// A hypervisor whose compute service belongs to another one, too, is returned without its service, and
// counted in `unclear`: otherwise one compute service could make berth delete the servers of another one.
// Only the nodes of Ironic share a compute service, and Ironic moves them between its services.
func TrustedHypervisors(all []Hypervisor) (trusted []Hypervisor, others, unclear int) {
	named, users, computes := map[string]int{}, map[string]int{}, map[string]int{}
	for _, h := range all {
		named[h.Hostname]++
		for _, service := range h.services() {
			users[service]++
			if !h.isBareMetalNode() {
				computes[service]++
			}
		}
	}
	for _, h := range all {
		if named[h.Hostname] != 1 || !h.isStorable() {
			continue
		}
		if s := foldCase(h.Service); s != "" && users[s] > 1 && computes[s] > 0 {
			h.Service = ""
			unclear++
		}
		trusted = append(trusted, h)
	}
	return trusted, len(all) - len(trusted), unclear
}

// services returns the names of the compute services that may belong to the hypervisor: the one that the
// hypervisor names, and the one with the name of the hypervisor.
func (h Hypervisor) services() []string {
	return slices.Compact([]string{foldCase(h.Service), foldCase(h.Hostname)})
}

// foldCase returns a text that is the same for names that differ only in the case of their letters: Nova's
// database ignores the case of a compute service's name.
func foldCase(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// FindHypervisor returns the hypervisor that a client calls `name`. The name is the hypervisor's hostname,
// its ID, the host of its compute service, or a part of its hostname that no other hostname contains.
// FindHypervisor refuses a hypervisor that TrustedHypervisors does not trust with its hostname and its
// compute service: the reservations of a host let berth delete the servers of the whole service.
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
			return found[0], found[0].checkTrusted(all)
		}
	}
	return Hypervisor{}, Faultf(UnknownHost,
		"Host '%s' not found! Nova has no hypervisor with this hostname, ID or compute service.", name)
}

// checkTrusted returns a *Fault if `all`, the hypervisors of Nova, contain another hypervisor with the same
// hostname or compute service, or if the database cannot store what Nova says about the hypervisor.
func (h Hypervisor) checkTrusted(all []Hypervisor) error {
	trusted, _, _ := TrustedHypervisors(all)
	i := slices.IndexFunc(trusted, func(t Hypervisor) bool { return t.Hostname == h.Hostname })
	switch {
	case i < 0:
		return Faultf(AmbiguousHost,
			"Nova describes hypervisor '%s' more than once, or with texts that cannot be stored.", h.Hostname)
	case trusted[i].Service == "":
		return Faultf(AmbiguousHost,
			"Compute service %s of host '%s' belongs to another hypervisor, too.", h.Service, h.Hostname)
	}
	return nil
}
