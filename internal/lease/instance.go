package lease

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Flavor is a Nova flavor.
type Flavor struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	VCPUs      int64             `json:"vcpus"`
	MemoryMB   int64             `json:"ram"`
	DiskGB     int64             `json:"disk"`
	Ephemeral  int64             `json:"ephemeral"`
	ExtraSpecs map[string]string `json:"extra_specs"`
}

// Resources returns the resources of one instance, by resource class.
func (d ReservationDraft) Resources() map[string]int64 {
	all := map[string]int64{}
	switch {
	case d.Type == VirtualInstance:
		all = map[string]int64{"VCPU": d.VCPUs, "MEMORY_MB": d.MemoryMB, "DISK_GB": d.DiskGB}
	case d.Type == FlavorInstance && d.Flavor != nil:
		all = d.Flavor.Resources()
	}
	for class, n := range all {
		if n == 0 {
			delete(all, class)
		}
	}
	return all
}

// Resources returns the resources of an instance of the flavor. An extra spec "resources:CLASS" of the flavor
// replaces the amount of the resource class CLASS, as in Nova.
func (f Flavor) Resources() map[string]int64 {
	cpus := "VCPU"
	if f.ExtraSpecs["hw:cpu_policy"] == "dedicated" {
		cpus = "PCPU"
	}
	all := map[string]int64{cpus: f.VCPUs, "MEMORY_MB": f.MemoryMB, "DISK_GB": f.DiskGB + f.Ephemeral}
	for key, value := range f.ExtraSpecs {
		class, is := strings.CutPrefix(key, "resources:")
		if n, err := strconv.ParseInt(value, 10, 32); is && err == nil && n >= 0 {
			all[class] = n
		}
	}
	return all
}

// Traits returns the traits that the flavor's extra specs require, and the traits that the flavor's extra
// specs forbid.
func (f Flavor) Traits() (required, forbidden []string) {
	for key, value := range f.ExtraSpecs {
		trait, is := strings.CutPrefix(key, "trait:")
		switch {
		case is && value == "required":
			required = append(required, trait)
		case is && value == "forbidden":
			forbidden = append(forbidden, trait)
		}
	}
	slices.Sort(required)
	slices.Sort(forbidden)
	return required, forbidden
}

// String returns the flavor as JSON.
func (f Flavor) String() string {
	text, err := json.Marshal(f)
	if err != nil { // impossible: a flavor contains only strings and numbers
		panic(err)
	}
	return string(text)
}

// instanceType is the resource type virtual:instance.
type instanceType struct{}

func (instanceType) Check(d ReservationDraft) error {
	if err := checkAmount(d.Amount, 1); err != nil {
		return err
	}
	for _, size := range []struct {
		name     string
		is, from int64
	}{{"vcpus", d.VCPUs, 1}, {"memory_mb", d.MemoryMB, 1}, {"disk_gb", d.DiskGB, 0}} {
		if size.is < size.from || size.is > math.MaxInt32 {
			return Faultf(MalformedParameter, "Malformed parameter %s: %d. It must be from %d to %d.",
				size.name, size.is, size.from, math.MaxInt32)
		}
	}
	if err := checkAffinity(d.Affinity); err != nil {
		return err
	}
	return checkRequirements(d)
}

// CheckChange allows every change of a pending reservation. If the reservation is active, CheckChange allows
// only a larger number of instances and rejects every other change.
func (instanceType) CheckChange(was Reservation, is ReservationDraft) error {
	grown := was.ReservationDraft
	grown.Amount = is.Amount
	switch {
	case was.Status == ReservationPending:
		return nil
	case !reflect.DeepEqual(grown, is):
		return Faultf(CannotUpdate, "Only the amount of an active reservation of instances can be updated.")
	case is.Amount < was.Amount:
		return Faultf(CannotUpdate, "The amount of an active reservation of instances cannot be reduced.")
	}
	return nil
}

// flavorType is the resource type flavor:instance.
type flavorType struct{}

func (flavorType) Check(d ReservationDraft) error {
	switch {
	case d.Flavor == nil:
		return Faultf(MissingParameter, "Missing parameter flavor_id")
	case d.Affinity != AffinityNone:
		return Faultf(CannotUpdate, "A reservation of the type %s cannot have an affinity.", FlavorInstance)
	}
	if err := CheckFlavorID(d.Flavor.ID); err != nil {
		return err
	}
	return checkAmount(d.Amount, 1)
}

// flavorID is the form of IDs that Nova gives to flavors.
var flavorID = regexp.MustCompile(`^[a-zA-Z0-9_.-]([a-zA-Z0-9 _.-]{0,253}[a-zA-Z0-9_.-])?$`)

// CheckFlavorID returns a Fault if Nova cannot have a flavor with this ID.
func CheckFlavorID(id string) error {
	if flavorID.MatchString(id) && id != "." && id != ".." {
		return nil
	}
	return Faultf(
		MalformedParameter,
		"Malformed parameter flavor_id: it must have 1 to 255 letters, digits, spaces and characters of \"_.-\".",
	)
}

// CheckChange rejects every change of the reservation itself. The dates of its lease may change.
func (flavorType) CheckChange(was Reservation, is ReservationDraft) error {
	if reflect.DeepEqual(was.ReservationDraft, is) {
		return nil
	}
	return Faultf(CannotUpdate,
		"A reservation of the type %s cannot be updated; only the dates of its lease can.",
		FlavorInstance)
}

func checkAffinity(a Affinity) error {
	if !slices.Contains([]Affinity{AffinityNone, AffinitySameHost, AffinityDifferentHosts}, a) {
		return Faultf(MalformedParameter, "Malformed parameter affinity: it must be True, False or None.")
	}
	return nil
}

// ReservationResourceClass returns the name of the reservation's own resource class in Placement. For each
// instance of the reservation, the instance's host has one unit of the resource class.
func ReservationResourceClass(id uuid.UUID) string {
	return "CUSTOM_RESERVATION_" + strings.ToUpper(strings.ReplaceAll(id.String(), "-", "_"))
}

// ResourceUsage is the usage of a host by one reservation during a time window.
type ResourceUsage struct {
	From, To  time.Time
	Slots     int
	Resources map[string]int64 // resources of one slot, by resource class
}

// usageEdge is the time at which the usage of a host by a reservation begins or ends.
type usageEdge struct {
	at        time.Time
	slots     int64 // negative: the usage ends
	resources map[string]int64
}

// PeakUsage returns the maximum usage of a host at any time of a window, by resource class. Its time does not
// grow with the square of the number of uses, because a project can have many reservations on a host.
func PeakUsage(uses []ResourceUsage, from, to time.Time) map[string]int64 {
	var edges []usageEdge
	for _, u := range uses {
		begin := laterOf(u.From, from)
		if u.To.After(begin) && (begin.Before(to) || begin.Equal(from)) {
			edges = append(
				edges,
				usageEdge{begin, int64(u.Slots), u.Resources},
				usageEdge{u.To, -int64(u.Slots), u.Resources},
			)
		}
	}
	slices.SortFunc(edges, func(a, b usageEdge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.slots, b.slots)) // at the same time, ends come first
	})
	now, peak := map[string]int64{}, map[string]int64{}
	for _, e := range edges {
		for class, n := range e.resources {
			now[class] += n * e.slots
			peak[class] = max(peak[class], now[class])
		}
	}
	return peak
}

// FreeSlots returns the number of instances that fit into the remaining capacity of a host. If the host lacks
// a resource class that an instance needs, FreeSlots returns 0.
func FreeSlots(capacity, used, each map[string]int64) int {
	room := maxAmount
	for class, n := range each {
		if n > 0 {
			room = min(room, int(max(capacity[class]-used[class], 0)/n))
		}
	}
	return room
}

// SlotCandidate is a host, with the number of instances of a reservation that fit on the host.
type SlotCandidate struct {
	Host         int64
	FreeSlots    int
	UsedByOthers bool // instances of other reservations are on the host
	OwnInstances int  // instances of this reservation on the host
}

// PickSlots distributes the instances of a reservation over hosts and returns the number of instances per
// host. PickSlots fills the hosts in this order: hosts that the reservation already has, hosts with instances
// of other reservations, empty hosts.
func PickSlots(candidates []SlotCandidate, amount int, affinity Affinity) (map[int64]int, error) {
	candidates = slices.Clone(candidates)
	rank := func(c SlotCandidate) int {
		switch {
		case c.OwnInstances > 0:
			return 0
		case c.UsedByOthers:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(candidates, func(a, b SlotCandidate) int { return rank(a) - rank(b) })
	picked := map[int64]int{}
	for _, c := range candidates {
		n := min(c.FreeSlots, amount)
		switch {
		case affinity == AffinitySameHost && n < amount:
			n = 0
		case affinity == AffinityDifferentHosts:
			n = min(n, 1)
		}
		if n > 0 {
			picked[c.Host] = n
			amount -= n
		}
	}
	if amount > 0 {
		return nil, Faultf(NotEnoughHosts, "Not enough hosts available")
	}
	return picked, nil
}

// SlotHosts returns the IDs of the hosts in `slots` (the number of instances per host), sorted.
func SlotHosts(slots map[int64]int) []int64 { return slices.Sorted(maps.Keys(slots)) }
