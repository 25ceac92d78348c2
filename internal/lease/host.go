package lease

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// HostResourceClass is a resource class in Placement. Every registered host has an inventory of the class
// HostResourceClass with a total of one.
const HostResourceClass = "CUSTOM_PHYSICAL_HOST"

// Host is a hypervisor that can be reserved.
type Host struct {
	ID                int64
	Hostname          string
	Provider          uuid.UUID // resource provider of the hypervisor
	NestedProvider    uuid.UUID // child provider that reservations allocate from
	ServiceName       string
	HypervisorType    string
	HypervisorVersion int
	VCPUs             int64
	MemoryMB          int64
	LocalGB           int64
	CPUInfo           string
	AvailabilityZone  string
	Reservable        bool
	Capabilities      map[string]string
	CreatedAt         time.Time
	UpdatedAt         *time.Time
	Quarantine        *Quarantine // nil: no lease has failed to release the host
}

// Quarantine says which lease has failed to release a host. New reservations do not get the host, and pending
// reservations move to other hosts if possible, until the lease has released the host.
type Quarantine struct {
	Lease   uuid.UUID
	Name    string
	Since   time.Time    // end of the lease
	Failure *CallFailure // nil: no failed call is recorded
}

// Sentence says which lease holds the host since when, and which call fails.
func (q Quarantine) Sentence(now time.Time) string {
	sentence := fmt.Sprintf("lease %s (%s) ended at %s and has not released the host",
		q.Name, q.Lease, formatTime(q.Since))
	if q.Failure != nil {
		sentence += ": " + q.Failure.Sentence(now)
	}
	return sentence
}

// NestedProviderName returns the name of the child provider that reservations of a hypervisor allocate from.
func NestedProviderName(hostname string) string { return "blazar_" + hostname }

// baseProperty returns the value of a property that every host has. The result `is` is false if `key` is not
// such a property, and `has` is false if the value of the property is null.
func (h *Host) baseProperty(key string) (value string, has, is bool) {
	switch key {
	case "id":
		value = strconv.FormatInt(h.ID, 10)
	case "hypervisor_hostname":
		value = h.Hostname
	case "service_name":
		value = h.ServiceName
	case "hypervisor_type":
		value = h.HypervisorType
	case "hypervisor_version":
		value = strconv.Itoa(h.HypervisorVersion)
	case "vcpus":
		value = strconv.FormatInt(h.VCPUs, 10)
	case "memory_mb":
		value = strconv.FormatInt(h.MemoryMB, 10)
	case "local_gb":
		value = strconv.FormatInt(h.LocalGB, 10)
	case "cpu_info":
		value = h.CPUInfo
	case "availability_zone":
		value = h.AvailabilityZone
	case "reservable":
		value = strconv.FormatBool(h.Reservable)
	case "status", "trust_id":
		return "", false, true
	default:
		return "", false, false
	}
	return value, true, true
}

// property returns the value of one of the host's properties, with which requirements are compared. If a
// capability of the host has the name of a base property, `property` returns the base property.
func (h *Host) property(key string) (value string, has bool) {
	if value, has, is := h.baseProperty(key); is {
		return value, has
	}
	value, has = h.Capabilities[key]
	return value, has
}

// Meets reports whether the host meets all requirements.
func (h *Host) Meets(requirements []Requirement) bool { return allMet(requirements, h.property) }

// HostCandidate is a host, with the information whether the host is free in the time window of a reservation.
type HostCandidate struct {
	Host
	Booked bool // another reservation has it, in the window or at another time
	Free   bool // not reserved in the window
	Late   bool // a lease that is past its end has not released the host yet
	// Former says that healing has taken the host from the reservation, FormerOfOther that it has taken the
	// host from another reservation that still runs. Servers of that reservation can be on the host.
	Former, FormerOfOther bool
}

// HostCandidates returns candidates without information about reservations.
func HostCandidates(hosts []Host) []HostCandidate {
	all := make([]HostCandidate, len(hosts))
	for i, h := range hosts {
		all[i] = HostCandidate{Host: h}
	}
	return all
}

// HostRequirements parses hypervisor_properties and resource_properties of a reservation.
func HostRequirements(hypervisor, resource string) ([]Requirement, error) {
	a, err := ParseRequirements(hypervisor)
	if err != nil {
		return nil, err
	}
	b, err := ParseRequirements(resource)
	return append(a, b...), err
}

// MatchCandidates returns the candidates that meet all requirements. If a requirement names a property that
// no host has, MatchCandidates returns a fault, because the name is probably misspelt.
func MatchCandidates(candidates []HostCandidate, requirements []Requirement) ([]HostCandidate, error) {
	for _, r := range requirements {
		if !isHostProperty(candidates, r.Key) {
			return nil, Faultf(MalformedRequirements, "No host has the property %q.", r.Key)
		}
	}
	var matching []HostCandidate
	for i := range candidates {
		if candidates[i].Meets(requirements) {
			matching = append(matching, candidates[i])
		}
	}
	return matching, nil
}

// isHostProperty reports whether `key` is a base property or a capability of one of the hosts.
func isHostProperty(hosts []HostCandidate, key string) bool {
	if _, _, is := new(Host).baseProperty(key); is {
		return true
	}
	for i := range hosts {
		if _, has := hosts[i].Capabilities[key]; has {
			return true
		}
	}
	return false
}

// PickHosts chooses at least `least` and at most `most` hosts. It first chooses the former hosts of the
// reservation. If at least `least` hosts have no reservation at any time, PickHosts chooses only from these
// hosts. Otherwise PickHosts first chooses hosts that have other reservations but are free in the time
// window. PickHosts chooses a host that a lease has not released in time only if too few other hosts are
// free, and never a former host of another reservation, because a reservation deletes all servers on its new
// hosts.
func PickHosts(candidates []HostCandidate, least, most int) ([]int64, error) {
	var former, unreserved, free, late []int64
	for _, c := range candidates {
		switch {
		case !c.Reservable || !c.Free || c.FormerOfOther:
		case c.Late:
			late = append(late, c.ID)
		case c.Former:
			former = append(former, c.ID)
		case c.Booked:
			free = append(free, c.ID)
		default:
			unreserved = append(unreserved, c.ID)
		}
	}
	picked := slices.Concat(former, unreserved)
	if len(picked) < least {
		picked = slices.Concat(former, free, unreserved)
	}
	if len(picked) < least {
		picked = append(picked, late...)
	}
	if len(picked) < least {
		return nil, Faultf(NotEnoughHosts, "Not enough hosts available")
	}
	return picked[:min(most, len(picked))], nil
}

// hostType is the resource type physical:host.
type hostType struct{}

func (hostType) Check(r ReservationDraft) error {
	if err := checkRange(r); err != nil {
		return err
	}
	if err := checkBeforeEnd(r); err != nil {
		return err
	}
	return checkRequirements(r)
}

// checkRange returns a fault if the minimum and the maximum number of hosts or devices are not valid.
func checkRange(r ReservationDraft) error {
	switch {
	case r.Min < 1 || r.Max < 1 || r.Min > maxHosts || r.Max > maxHosts:
		return Faultf(MalformedParameter,
			"Malformed parameter min or max: %d-%d. Both must be from 1 to %d.", r.Min, r.Max, maxHosts)
	case r.Max < r.Min:
		return Faultf(InvalidInput, "Invalid range: max %d is less than min %d.", r.Max, r.Min)
	}
	return nil
}

// CheckChange allows every change, because the store checks whether a change would take hosts from an active
// reservation.
func (hostType) CheckChange(Reservation, ReservationDraft) error { return nil }

const maxHosts = 1_000_000

// CheckCapabilities returns a fault if a name or value of a host's capabilities is not valid.
func CheckCapabilities(capabilities map[string]string) error {
	return checkCapabilities(capabilities, "host", "id", "hypervisor_hostname")
}

// checkCapabilities returns a fault if a name or value of the capabilities is not valid. The parameter `noun`
// says what has the capabilities; the names in `fixed` cannot be capabilities.
func checkCapabilities(capabilities map[string]string, noun string, fixed ...string) error {
	const longest = 64
	for _, key := range slices.Sorted(maps.Keys(capabilities)) {
		switch n := utf8.RuneCountInString(key); {
		case n > longest:
			return Faultf(MalformedParameter,
				"Extra capability key too long: it must have at most %d characters.", longest)
		case n == 0:
			return Faultf(MalformedParameter, "An extra capability must have a key.")
		case strings.ContainsRune(key+capabilities[key], 0):
			return Faultf(MalformedParameter, "A capability must not contain a NUL character.")
		case slices.Contains(fixed, key):
			return Faultf(MalformedParameter, "The %s of a %s cannot be changed.", key, noun)
		}
	}
	return nil
}

// HostAllocation lists the reservations of a host (Blazar's allocations).
type HostAllocation struct {
	Host         int64
	Reservations []AllocatedReservation
}

// AllocatedReservation is one reservation that a host, network or device is allocated to.
type AllocatedReservation struct {
	ID             uuid.UUID
	Lease          uuid.UUID
	StartAt, EndAt time.Time
}

// AllocationFilter filters the allocations of hosts, network segments and devices; empty fields match
// everything.
type AllocationFilter struct {
	Lease, Reservation string // UUIDs
	Host               int64
	AfterHost          int64    // ID of the last host of the previous page
	AfterResource      Position // of the last network segment or device of the previous page
	Limit              int      // maximum number of hosts, network segments or devices; 0: all
}

// ResourceProperty is the name of a property of hosts, networks or devices, together with all values that
// registered resources of the type have for this property.
type ResourceProperty struct {
	ID        uuid.UUID
	Name      string
	Private   bool
	CreatedAt time.Time
	UpdatedAt *time.Time
	Values    []string
}
