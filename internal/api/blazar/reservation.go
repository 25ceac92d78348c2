package blazar

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/lease"
)

// form lists the required and the optional fields of a reservation type in a POST.
type form struct{ must, may []string }

var forms = map[string]form{
	lease.PhysicalHost: {
		[]string{"min", "max", "hypervisor_properties", "resource_properties"},
		[]string{"before_end"},
	},
	lease.VirtualInstance: {
		[]string{"vcpus", "memory_mb", "disk_gb", "amount", "affinity", "resource_properties"},
		nil,
	},
	lease.FlavorInstance: {[]string{"amount", "flavor_id"}, []string{"affinity"}},
	lease.FloatingIP:     {[]string{"network_id", "amount"}, []string{"required_floatingips"}},
	lease.NetworkSegment: {
		[]string{"network_name"},
		[]string{"network_description", "network_properties", "resource_properties", "before_end"},
	},
	lease.Device: {[]string{"min", "max"}, []string{"resource_properties", "before_end"}},
}

// reservationFields are all fields that a reservation in a PUT may contain. If a PUT contains a field of
// another reservation type, berth ignores the field.
var reservationFields = append(
	[]string{"id", "resource_type", "flavor_id"},
	slices.Collect(maps.Keys(readers))...)

// readers maps the name of each field of a reservation to the function that reads the field.
var readers = map[string]func(o object, name string, c *lease.ReservationChange) error{
	"min":       readInt(func(c *lease.ReservationChange) **int { return &c.Min }),
	"max":       readInt(func(c *lease.ReservationChange) **int { return &c.Max }),
	"amount":    readInt(func(c *lease.ReservationChange) **int { return &c.Amount }),
	"vcpus":     readInt64(func(c *lease.ReservationChange) **int64 { return &c.VCPUs }),
	"memory_mb": readInt64(func(c *lease.ReservationChange) **int64 { return &c.MemoryMB }),
	"disk_gb":   readInt64(func(c *lease.ReservationChange) **int64 { return &c.DiskGB }),
	"hypervisor_properties": readText(func(c *lease.ReservationChange) **string {
		return &c.HypervisorProperties
	}),
	"resource_properties": readText(func(c *lease.ReservationChange) **string {
		return &c.ResourceProperties
	}),
	"network_name": readText(func(c *lease.ReservationChange) **string { return &c.NetworkName }),
	"network_description": readText(func(c *lease.ReservationChange) **string {
		return &c.NetworkDescription
	}),
	"network_properties":   readText(func(c *lease.ReservationChange) **string { return &c.NetworkProperties }),
	"before_end":           readText(func(c *lease.ReservationChange) **string { return &c.BeforeEnd }),
	"affinity":             readAffinity,
	"network_id":           readNetwork,
	"required_floatingips": readRequired,
}

func readInt(to func(*lease.ReservationChange) **int) func(object, string, *lease.ReservationChange) error {
	return func(o object, name string, c *lease.ReservationChange) error {
		n, err := o.number(name)
		*to(c) = &n
		return err
	}
}

func readInt64(
	to func(*lease.ReservationChange) **int64,
) func(object, string, *lease.ReservationChange) error {
	return func(o object, name string, c *lease.ReservationChange) error {
		n, err := o.number(name)
		wide := int64(n)
		*to(c) = &wide
		return err
	}
}

func readText(
	to func(*lease.ReservationChange) **string,
) func(object, string, *lease.ReservationChange) error {
	return func(o object, name string, c *lease.ReservationChange) error {
		s, err := o.text(name)
		*to(c) = &s
		return err
	}
}

// readAffinity reads the affinity: a boolean, or one of Blazar's words for true and false. The values null
// and "None" mean that the reservation has no affinity rule.
func readAffinity(o object, name string, c *lease.ReservationChange) error {
	word := strings.ToLower(string(bytes.TrimSpace(o[name])))
	if text, quoted := strings.CutPrefix(word, `"`); quoted {
		word = strings.TrimSuffix(text, `"`)
	}
	a := lease.AffinityDifferentHosts
	switch {
	case slices.Contains([]string{"true", "1", "t", "y", "yes", "on"}, word):
		a = lease.AffinitySameHost
	case slices.Contains([]string{"null", "none"}, word):
		a = lease.AffinityNone
	case !slices.Contains([]string{"false", "0", "f", "n", "no", "off"}, word):
		return lease.Faultf(lease.MalformedParameter,
			"Malformed parameter affinity: it must be True, False or None.")
	}
	c.Affinity = &a
	return nil
}

func readNetwork(o object, name string, c *lease.ReservationChange) error {
	id, err := o.uuid(name)
	c.Network = &id
	return err
}

// uuid reads a field that must be a UUID.
func (o object) uuid(name string) (uuid.UUID, error) {
	text, err := o.text(name)
	if err != nil {
		return uuid.Nil, err
	}
	id, ok := osapi.UUID(text)
	if !ok {
		return id, lease.Faultf(lease.MalformedParameter, "Malformed parameter %s: %s is not a UUID.",
			name, excerpt(text))
	}
	return id, nil
}

// address parses an IP address.
func address(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" || ip.Is4In6() {
		return ip, lease.Faultf(lease.MalformedParameter, "%s is not a valid IP address.", excerpt(text))
	}
	return ip, nil
}

func readRequired(o object, name string, c *lease.ReservationChange) error {
	var texts []string
	if err := json.Unmarshal(o[name], &texts); err != nil {
		return lease.Faultf(lease.MalformedParameter,
			"Malformed parameter %s: it must be a list of addresses.", name)
	}
	if err := checkLength(name, len(texts), maxAddresses); err != nil {
		return err
	}
	all := []netip.Addr{}
	for _, text := range texts {
		ip, err := address(text)
		if err != nil {
			return err
		}
		all = append(all, ip)
	}
	c.Required = &all
	return nil
}

// reservationValues reads the fields of a reservation. reservationValues skips fields that the JSON object
// does not contain.
func reservationValues(o object, c *lease.ReservationChange) error {
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		if _, given := o[name]; !given {
			continue
		}
		if err := readers[name](o, name, c); err != nil {
			return err
		}
	}
	if !o.has("resource_type") {
		return nil
	}
	typ, err := o.text("resource_type")
	c.Type = &typ
	return err
}

// flavorReader reads the flavors of one request from Nova, each of them once. It needs a slot from the first
// flavor on, because a request can have many flavors, and berth asks Nova with the rights of its own user.
type flavorReader struct {
	*handler
	known   map[string]lease.Flavor
	release func() // of the slot; nil: the reader has no slot
}

// close releases the slot of the reader.
func (f *flavorReader) close() {
	if f.release != nil {
		f.release()
	}
}

// read returns a flavor that the project may use; the empty project may use every flavor.
func (f *flavorReader) read(ctx context.Context, project, id string) (flavor lease.Flavor, err error) {
	if flavor, ok := f.known[id]; ok {
		return flavor, nil
	}
	waited := osapi.WaitOutside(ctx, func() {
		if f.release == nil {
			f.release, err = f.flavorReads.Acquire(ctx)
		}
		if err == nil {
			flavor, err = f.Flavor(ctx, project, id)
		}
	})
	if err == nil {
		f.known[id] = flavor
	}
	return flavor, cmp.Or(err, waited)
}

// reservationDraft reads a reservation in the request for a new lease.
func (f *flavorReader) reservationDraft(ctx context.Context, o object) (d lease.ReservationDraft, err error) {
	if err := o.need("resource_type"); err != nil {
		return d, err
	}
	if d.Type, err = o.text("resource_type"); err != nil {
		return d, err
	}
	fields, ok := forms[d.Type]
	if !ok {
		return d, lease.Faultf(lease.UnsupportedType, "The resource type %s is not supported.",
			excerpt(d.Type))
	}
	if err := o.only(slices.Concat([]string{"resource_type"}, fields.must, fields.may)...); err != nil {
		return d, err
	}
	if _, null := o["affinity"]; null && !o.has("affinity") {
		o["affinity"] = []byte(`"None"`)
	}
	if err := o.need(fields.must...); err != nil {
		return d, err
	}
	var c lease.ReservationChange
	if err := reservationValues(o, &c); err != nil {
		return d, err
	}
	if slices.Contains(fields.may, "before_end") {
		d.BeforeEnd = "default"
	}
	c.ApplyTo(&d)
	if d.Type == lease.FlavorInstance {
		d.Flavor, err = f.flavor(ctx, o, d)
	}
	return d, err
}

// flavor checks all fields of a flavor:instance reservation, and then reads the reservation's flavor from
// Nova.
func (f *flavorReader) flavor(ctx context.Context, o object, d lease.ReservationDraft) (*lease.Flavor, error) {
	id, err := o.text("flavor_id")
	if err != nil {
		return nil, err
	}
	d.Flavor = &lease.Flavor{ID: id}
	if err := lease.CheckReservation(d); err != nil {
		return nil, err
	}
	if f.Flavor == nil {
		return nil, lease.Faultf(lease.UnsupportedType,
			"The resource type %s is not supported without Nova.", d.Type)
	}
	project := identity.From(ctx).Project
	switch {
	case identity.From(ctx).Admin():
		project = "" // as in Nova, administrators use every flavor
	case project == "":
		return nil, lease.Faultf(lease.NotAuthorized, "A caller without a project cannot use a flavor.")
	}
	flavor, err := f.read(ctx, project, id)
	var fault *lease.Fault
	if err != nil && !errors.As(err, &fault) {
		slog.ErrorContext(ctx, "Reading a flavor from Nova failed", "flavor", id, "error", err)
		return nil, osapi.Fault(http.StatusServiceUnavailable, "",
			"Nova cannot be asked about flavor %s now. Try again later.", excerpt(id))
	}
	return &flavor, err
}

// reservationView contains the fields that the views of all reservation types share.
type reservationView struct {
	ID               string                  `json:"id"`
	Lease            string                  `json:"lease_id"`
	ResourceID       string                  `json:"resource_id"`
	ResourceType     string                  `json:"resource_type"`
	Status           lease.ReservationStatus `json:"status"`
	MissingResources bool                    `json:"missing_resources"`
	ResourcesChanged bool                    `json:"resources_changed"`
	CreatedAt        string                  `json:"created_at"`
	UpdatedAt        *string                 `json:"updated_at"`
}

type hostReservationView struct {
	reservationView
	HypervisorProperties string `json:"hypervisor_properties"`
	ResourceProperties   string `json:"resource_properties"`
	BeforeEnd            string `json:"before_end"`
	Min                  int    `json:"min"`
	Max                  int    `json:"max"`
}

type instanceReservationView struct {
	reservationView
	VCPUs              int64   `json:"vcpus"`
	MemoryMB           int64   `json:"memory_mb"`
	DiskGB             int64   `json:"disk_gb"`
	Amount             int     `json:"amount"`
	Affinity           *bool   `json:"affinity"`
	ResourceProperties string  `json:"resource_properties"`
	Flavor             string  `json:"flavor_id"` // the flavor with which servers use the reservation
	Aggregate          *int64  `json:"aggregate_id"`
	ServerGroup        *string `json:"server_group_id"`
}

type addressReservationView struct {
	reservationView
	Network  string       `json:"network_id"`
	Amount   int          `json:"amount"`
	Required []netip.Addr `json:"required_floatingips"`
}

type segmentReservationView struct {
	reservationView
	NetworkName        string  `json:"network_name"`
	NetworkDescription string  `json:"network_description"`
	NetworkProperties  string  `json:"network_properties"`
	ResourceProperties string  `json:"resource_properties"`
	BeforeEnd          string  `json:"before_end"`
	Network            *string `json:"network_id"` // null: Neutron does not have the network yet
}

type deviceReservationView struct {
	reservationView
	ResourceProperties string `json:"resource_properties"`
	BeforeEnd          string `json:"before_end"`
	Min                int    `json:"min"`
	Max                int    `json:"max"`
}

// reservationViewOf returns the JSON object of a reservation. The object contains the fields that all
// reservation types have, and the fields of the reservation's own type.
func reservationViewOf(of string, r lease.Reservation) any {
	v := reservationView{
		ID:               r.ID.String(),
		Lease:            of,
		ResourceID:       r.ID.String(),
		ResourceType:     r.Type,
		Status:           r.Status,
		MissingResources: r.MissingResources,
		ResourcesChanged: r.ResourcesChanged,
		CreatedAt:        stamp(r.CreatedAt),
		UpdatedAt:        stampOrNull(r.UpdatedAt),
	}
	switch r.Type {
	case lease.FloatingIP:
		return addressReservationView{v, r.Network.String(), r.Amount, append([]netip.Addr{}, r.Required...)}
	case lease.NetworkSegment:
		s := segmentReservationView{
			v,
			r.NetworkName,
			r.NetworkDescription,
			r.NetworkProperties,
			r.ResourceProperties,
			r.BeforeEnd,
			nil,
		}
		if r.NetworkID != "" {
			s.Network = &r.NetworkID
		}
		return s
	case lease.Device:
		return deviceReservationView{v, r.ResourceProperties, r.BeforeEnd, r.Min, r.Max}
	case lease.VirtualInstance:
		return instanceViewOf(v, r)
	case lease.FlavorInstance:
		i := instanceViewOf(v, r)
		i.VCPUs, i.MemoryMB, i.DiskGB = r.Flavor.VCPUs, r.Flavor.MemoryMB, r.Flavor.DiskGB+r.Flavor.Ephemeral
		i.ResourceProperties = r.Flavor.String()
		return i
	default:
		return hostReservationView{v, r.HypervisorProperties, r.ResourceProperties, r.BeforeEnd, r.Min, r.Max}
	}
}

func instanceViewOf(v reservationView, r lease.Reservation) instanceReservationView {
	i := instanceReservationView{
		reservationView:    v,
		VCPUs:              r.VCPUs,
		MemoryMB:           r.MemoryMB,
		DiskGB:             r.DiskGB,
		Amount:             r.Amount,
		ResourceProperties: r.ResourceProperties,
		Flavor:             r.ID.String(),
		Aggregate:          r.AggregateID,
	}
	if r.Affinity != lease.AffinityNone {
		together := r.Affinity == lease.AffinitySameHost
		i.Affinity = &together
	}
	if r.ServerGroupID != "" {
		i.ServerGroup = &r.ServerGroupID
	}
	return i
}
