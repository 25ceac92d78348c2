package lease

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ReservableResource is a network segment or a device, which operators register so that leases can reserve
// it.
type ReservableResource struct {
	ID           uuid.UUID
	Type         string            // NetworkSegment or Device
	Attributes   map[string]string // the attributes that every resource of the type has
	Capabilities map[string]string
	CreatedAt    time.Time
	UpdatedAt    *time.Time
}

// Position returns the position of the resource in the list of its type.
func (r ReservableResource) Position() Position { return Position{r.CreatedAt, r.ID} }

// Segment is the segment of a provider network in Neutron.
type Segment struct {
	NetworkType     string // vlan or vxlan
	PhysicalNetwork string // empty for vxlan
	ID              int    // VLAN ID or VNI
}

// String describes the segment in errors.
func (s Segment) String() string {
	if s.PhysicalNetwork == "" {
		return fmt.Sprintf("%s %d", s.NetworkType, s.ID)
	}
	return fmt.Sprintf("%s %d of %s", s.NetworkType, s.ID, s.PhysicalNetwork)
}

// Segment returns the segment that a resource of the type NetworkSegment stands for.
func (r ReservableResource) Segment() Segment {
	id, _ := strconv.Atoi(r.Attributes["segment_id"]) // checkSegment has accepted the number
	return Segment{r.Attributes["network_type"], r.Attributes["physical_network"], id}
}

// registeredType holds the rules of the resources of one type that operators register.
type registeredType struct {
	noun     string // what error messages call a resource of the type
	plural   string
	required []string // names of the attributes that every resource has
	optional []string
}

var registeredTypes = map[string]registeredType{
	NetworkSegment: {
		"network",
		"networks",
		[]string{"network_type", "segment_id"},
		[]string{"physical_network"},
	},
	Device: {"device", "devices", []string{"name", "device_type", "device_driver"}, nil},
}

// With returns the resource with changed attributes and capabilities, or a fault if the result is not valid.
// The values in `unset` are the names of attributes and capabilities that the resource loses.
func (r ReservableResource) With(set map[string]string, unset []string) (ReservableResource, error) {
	rules := registeredTypes[r.Type]
	attributes, capabilities := copyOf(r.Attributes), copyOf(r.Capabilities)
	names := append(slices.Clone(rules.required), rules.optional...)
	for key, value := range set {
		if slices.Contains(names, key) {
			attributes[key] = value
		} else {
			capabilities[key] = value
		}
	}
	for _, key := range unset {
		delete(attributes, key)
		delete(capabilities, key)
	}
	r.Attributes, r.Capabilities = attributes, capabilities
	missing := slices.DeleteFunc(slices.Clone(rules.required),
		func(name string) bool { return attributes[name] != "" })
	if len(missing) > 0 {
		return r, Faultf(MissingParameter, "Missing parameter %s", strings.Join(missing, ","))
	}
	for name, value := range attributes {
		if err := checkText(name, value, ""); err != nil {
			return r, err
		}
	}
	if err := checkCapabilities(capabilities, rules.noun, "id", "created_at", "updated_at"); err != nil {
		return r, err
	}
	if r.Type == NetworkSegment {
		return r, checkSegment(attributes)
	}
	return r, nil
}

// copyOf returns a copy of a map; the copy of a nil map is an empty map, to which keys can be added.
func copyOf(m map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, m)
	return all
}

// checkText returns a fault if an attribute is longer than 255 characters, which is the limit of Neutron, or
// contains a control character other than those in `allowed`. Neutron accepts no control characters in the
// name of a physical network, and only those that separate words and lines in the names and descriptions of
// networks.
func checkText(name, value, allowed string) error {
	const longest = 255
	forbidden := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(allowed, r) }
	if utf8.RuneCountInString(value) > longest || strings.ContainsFunc(value, forbidden) ||
		!utf8.ValidString(value) {
		return Faultf(MalformedParameter,
			"Malformed parameter %s: it must have at most %d characters, without control characters.",
			name, longest)
	}
	return nil
}

// separators are the control characters that names and descriptions may contain.
const separators = "\t\n\r"

// Largest segmentation IDs: of VLANs (IEEE 802.1Q) and of VXLANs (RFC 7348).
const (
	maxVLAN = 4094
	maxVNI  = 1<<24 - 1
)

// checkSegment returns a fault if the attributes do not describe a VLAN on a physical network or a VXLAN.
// checkSegment writes the segmentation ID without leading zeros.
func checkSegment(attributes map[string]string) error {
	kind, physical := attributes["network_type"], attributes["physical_network"]
	largest, known := map[string]int{"vlan": maxVLAN, "vxlan": maxVNI}[kind]
	id, err := strconv.Atoi(attributes["segment_id"])
	switch {
	case !known:
		return Faultf(MalformedParameter,
			"Malformed parameter network_type: %s. It must be vlan or vxlan.", kind)
	case err != nil || id < 1 || id > largest:
		return Faultf(
			MalformedParameter, "Malformed parameter segment_id: %s. It must be from 1 to %d.",
			attributes["segment_id"], largest,
		)
	case kind == "vlan" && physical == "":
		return Faultf(MissingParameter, "Missing parameter physical_network")
	case kind != "vlan" && physical != "":
		return Faultf(MalformedParameter,
			"Malformed parameter physical_network: only a segment with network_type vlan may have one.")
	}
	attributes["segment_id"] = strconv.Itoa(id)
	return nil
}

// property returns the value of one of the resource's properties, with which requirements are compared. If a
// capability has the name of an attribute, `property` returns the attribute.
func (r ReservableResource) property(key string) (value string, has bool) {
	if key == "id" {
		return r.ID.String(), true
	}
	if value, has = r.Attributes[key]; !has {
		value, has = r.Capabilities[key]
	}
	return value, has
}

// Meets reports whether the resource meets all requirements.
func (r ReservableResource) Meets(requirements []Requirement) bool {
	return allMet(requirements, r.property)
}

// CheckChange returns a fault if the change of a reserved resource to `is` is not allowed: the attributes
// cannot change, and neither can the capabilities in `requirements`, which the reservations of the resource
// require.
func (r ReservableResource) CheckChange(is ReservableResource, requirements []Requirement) error {
	noun := registeredTypes[r.Type].noun
	if !maps.Equal(r.Attributes, is.Attributes) {
		return Faultf(ResourceInUse, "The attributes of %s %s cannot change: a reservation has it.",
			noun, r.ID)
	}
	for _, one := range requirements {
		old, had := r.Capabilities[one.Key]
		if now, has := is.Capabilities[one.Key]; had != has || old != now {
			return Faultf(ResourceInUse,
				"Capability %s of %s %s cannot change: a reservation requires it.", one.Key, noun, r.ID)
		}
	}
	return nil
}

// ReservedFault returns the fault that the resource cannot be deleted, because a reservation has it.
func (r ReservableResource) ReservedFault() error {
	return Faultf(ResourceInUse, "The %s %s is reserved and cannot be deleted.",
		registeredTypes[r.Type].noun, r.ID)
}

// RegisteredFault returns the fault that the resource cannot be registered, because another resource has the
// same identity: the same segment, or the same name of a device.
func (r ReservableResource) RegisteredFault() error {
	identity := "the name " + r.Attributes["name"]
	if r.Type == NetworkSegment {
		identity = "the segment " + r.Segment().String()
	}
	return Faultf(ResourceInUse, "A %s with %s is registered already.",
		registeredTypes[r.Type].noun, identity)
}

// ResourceCandidate is a resource, with the information whether the resource is free in the time window of a
// reservation.
type ResourceCandidate struct {
	ReservableResource
	Booked bool // another reservation has it, in the window or at another time
	Free   bool // not reserved in the window
	Late   bool // a lease that is past its end has not released the resource yet
}

// ResourceRange returns how many network segments or devices a reservation needs: at least `least`, and at
// most `most`.
func (d ReservationDraft) ResourceRange() (least, most int) {
	if d.Type == NetworkSegment {
		return 1, 1
	}
	return d.Min, d.Max
}

// PickResources chooses the network segments or devices of a reservation. PickResources keeps the resources
// in `held` that are free and meet the requirements, up to the maximum of the reservation. If more
// resources are needed, PickResources chooses only resources that have no reservation at any time, if there
// are enough of them. PickResources chooses a resource that a lease has not released in time only if too
// few others are free. PickResources returns a fault if too few resources are free, or if a requirement
// names a property that no resource has.
func PickResources(
	d ReservationDraft,
	candidates []ResourceCandidate,
	held []uuid.UUID,
) ([]uuid.UUID, error) {
	matching, err := matchResources(d, candidates)
	if err != nil {
		return nil, err
	}
	least, most := d.ResourceRange()
	var kept, unreserved, free, late []uuid.UUID
	for _, c := range matching {
		switch {
		case !c.Free:
		case slices.Contains(held, c.ID) && len(kept) < most:
			kept = append(kept, c.ID)
		case c.Late:
			late = append(late, c.ID)
		case c.Booked:
			free = append(free, c.ID)
		default:
			unreserved = append(unreserved, c.ID)
		}
	}
	if len(kept)+len(unreserved) < least {
		unreserved = append(free, unreserved...)
	}
	picked := append(kept, unreserved...)
	if len(picked) < least {
		picked = append(picked, late...)
	}
	if len(picked) < least {
		return nil, Faultf(NotEnoughResources, "Not enough %s available", registeredTypes[d.Type].plural)
	}
	return picked[:min(most, len(picked))], nil
}

// matchResources returns the candidates that meet the requirements of a reservation.
func matchResources(d ReservationDraft, candidates []ResourceCandidate) ([]ResourceCandidate, error) {
	requirements, err := d.Requirements()
	if err != nil {
		return nil, err
	}
	rules := registeredTypes[d.Type]
	names := slices.Concat(rules.required, rules.optional, []string{"id"})
	for _, r := range requirements {
		has := func(c ResourceCandidate) bool { _, ok := c.Capabilities[r.Key]; return ok }
		if !slices.Contains(names, r.Key) && !slices.ContainsFunc(candidates, has) {
			return nil, Faultf(MalformedRequirements, "No %s has the property %q.", rules.noun, r.Key)
		}
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c ResourceCandidate) bool {
		return !c.Meets(requirements)
	}), nil
}

// KeepsHeld returns a fault if a reservation that has started would lose one of the resources that it has:
// Neutron cannot move a network to another segment, and the users of a device would lose their work.
func KeepsHeld(d ReservationDraft, held, picked []uuid.UUID) error {
	if slices.ContainsFunc(held, func(id uuid.UUID) bool { return !slices.Contains(picked, id) }) {
		return Faultf(NotEnoughResources,
			"Not enough %s available: an active reservation cannot lose one of its %[1]s.",
			registeredTypes[d.Type].plural)
	}
	return nil
}

// segmentType is the resource type network.
type segmentType struct{}

func (segmentType) Check(d ReservationDraft) error {
	if d.NetworkName == "" {
		return Faultf(MalformedParameter, "Malformed parameter network_name: it must not be empty.")
	}
	if err := checkText("network_name", d.NetworkName, separators); err != nil {
		return err
	}
	if err := checkText("network_description", d.NetworkDescription, separators); err != nil {
		return err
	}
	if err := checkBeforeEnd(d); err != nil {
		return err
	}
	return checkRequirements(d)
}

// CheckChange rejects a new name or description for the network of a reservation that has started. The
// network then exists in Neutron, and users must change it there.
func (segmentType) CheckChange(was Reservation, is ReservationDraft) error {
	if was.Status != ReservationPending &&
		(is.NetworkName != was.NetworkName || is.NetworkDescription != was.NetworkDescription) {
		return Faultf(
			CannotUpdate,
			"The network_name and network_description of a reservation cannot be updated after its start; update the network in Neutron.",
		)
	}
	return nil
}

// deviceType is the resource type device.
type deviceType struct{}

func (deviceType) Check(d ReservationDraft) error {
	if err := checkRange(d); err != nil {
		return err
	}
	if err := checkBeforeEnd(d); err != nil {
		return err
	}
	return checkRequirements(d)
}

// CheckChange allows every change; KeepsHeld rejects changes that would take devices from an active
// reservation.
func (deviceType) CheckChange(Reservation, ReservationDraft) error { return nil }

// ResourceAllocation lists the reservations of a network segment or device.
type ResourceAllocation struct {
	Resource     uuid.UUID
	CreatedAt    time.Time // of the resource
	Reservations []AllocatedReservation
}
