package lease

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// HostClass is the resource class in inventory of which every registered host has one.
const HostClass = "CUSTOM_PHYSICAL_HOST"

// Host is a hypervisor that can be reserved.
type Host struct {
	ID                int64
	Hostname          string
	Provider          uuid.UUID // the hypervisor in inventory
	Nested            uuid.UUID // the provider below it that is given to reservations
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
}

// NestedName is the name of the provider below the hypervisor with that name.
func NestedName(hostname string) string { return "blazar_" + hostname }

// baseProperties are the keys that every host knows, if only as null.
var baseProperties = []string{"id", "hypervisor_hostname", "service_name", "hypervisor_type", "hypervisor_version",
	"vcpus", "memory_mb", "local_gb", "cpu_info", "availability_zone", "reservable", "status", "trust_id"}

// Properties are what requirements are compared with. A capability never hides a fact of the same name here.
func (h Host) Properties() map[string]string {
	all := maps.Clone(h.Capabilities)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, map[string]string{
		"id":                  strconv.FormatInt(h.ID, 10),
		"hypervisor_hostname": h.Hostname,
		"service_name":        h.ServiceName,
		"hypervisor_type":     h.HypervisorType,
		"hypervisor_version":  strconv.Itoa(h.HypervisorVersion),
		"vcpus":               strconv.FormatInt(h.VCPUs, 10),
		"memory_mb":           strconv.FormatInt(h.MemoryMB, 10),
		"local_gb":            strconv.FormatInt(h.LocalGB, 10),
		"cpu_info":            h.CPUInfo,
		"availability_zone":   h.AvailabilityZone,
		"reservable":          strconv.FormatBool(h.Reservable),
	})
	delete(all, "status")
	delete(all, "trust_id")
	return all
}

// Candidate is a host and how it stands in the window that a reservation asks for.
type Candidate struct {
	Host
	Booked bool // some reservation holds it, whenever
	Free   bool // none does in the window
}

// Requirements reads both texts of a reservation's requirements.
func Requirements(hypervisor, resource string) ([]Requirement, error) {
	a, err := ParseRequirements(hypervisor)
	if err != nil {
		return nil, err
	}
	b, err := ParseRequirements(resource)
	return append(a, b...), err
}

// Matching keeps the candidates that meet all requirements. A property that no host has is refused: it is
// more likely misspelt than meant.
func Matching(candidates []Candidate, requirements []Requirement) ([]Candidate, error) {
	for _, r := range requirements {
		known := slices.Contains(baseProperties, r.Key) ||
			slices.ContainsFunc(candidates, func(c Candidate) bool { _, ok := c.Capabilities[r.Key]; return ok })
		if !known {
			return nil, Refuse(MalformedRequirements, "No host has the property %q.", r.Key)
		}
	}
	var matching []Candidate
	for _, c := range candidates {
		properties := c.Properties()
		if !slices.ContainsFunc(requirements, func(r Requirement) bool { return !r.Holds(properties) }) {
			matching = append(matching, c)
		}
	}
	return matching, nil
}

// Pick chooses least to most hosts. Hosts that nobody ever booked are kept for themselves if they are enough;
// otherwise those that are free in the window come first.
func Pick(candidates []Candidate, least, most int) ([]int64, error) {
	var virgin, free []int64
	for _, c := range candidates {
		switch {
		case !c.Reservable || !c.Free:
		case c.Booked:
			free = append(free, c.ID)
		default:
			virgin = append(virgin, c.ID)
		}
	}
	if len(virgin) < least {
		virgin = append(free, virgin...)
	}
	if len(virgin) < least {
		return nil, Refuse(NotEnoughHosts, "Not enough hosts available")
	}
	return virgin[:min(most, len(virgin))], nil
}

// hosts are the rules of physical:host.
type hosts struct{}

func (hosts) Check(r ReservationDraft) error {
	switch {
	case r.Min < 1 || r.Max < 1 || r.Min > maxHosts || r.Max > maxHosts:
		return Refuse(MalformedParameter, "Malformed parameter min or max: %d-%d. Both must be from 1 to %d.", r.Min, r.Max, maxHosts)
	case r.Max < r.Min:
		return Refuse(InvalidInput, "Invalid range: max %d is less than min %d.", r.Max, r.Min)
	case !slices.Contains([]string{"", "default", "snapshot"}, r.BeforeEnd):
		return Refuse(MalformedParameter, "Malformed parameter before_end")
	}
	return checkTexts(r)
}

// Change allows everything. Whether an active reservation would lose hosts is seen when they are chosen.
func (hosts) Change(Reservation, ReservationDraft) error { return nil }

const maxHosts = 1_000_000

// CheckCapabilities tells what is wrong with the names and values of a host's capabilities; nil if nothing is.
func CheckCapabilities(capabilities map[string]string) error {
	const longest = 64
	for _, key := range slices.Sorted(maps.Keys(capabilities)) {
		switch n := utf8.RuneCountInString(key); {
		case n == 0 || n > longest:
			return Refuse(MalformedParameter, "The name of a capability must have from 1 to %d characters.", longest)
		case strings.ContainsRune(key+capabilities[key], 0):
			return Refuse(MalformedParameter, "A capability must not hold a NUL character.")
		case key == "id" || key == "hypervisor_hostname":
			return Refuse(MalformedParameter, "The %s of a host cannot be changed.", key)
		}
	}
	return nil
}

// HostUse is who has a host when.
type HostUse struct {
	Host         int64
	Reservations []HostReservation
}

// HostReservation is a reservation of one host.
type HostReservation struct {
	ID             uuid.UUID
	Lease          uuid.UUID
	StartAt, EndAt time.Time
}

// UseFilter narrows HostUses; empty fields do not.
type UseFilter struct {
	Lease, Reservation string // UUIDs
	Host               int64
}

// HostProperty is a capability that hosts have, with all its values.
type HostProperty struct {
	ID        uuid.UUID
	Name      string
	Private   bool
	CreatedAt time.Time
	UpdatedAt *time.Time
	Values    []string
}
