package blazar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/lease"
)

// form is how a type of reservation is asked for: what a POST must name, and what it may.
type form struct{ must, may []string }

var forms = map[string]form{
	lease.PhysicalHost:    {[]string{"min", "max", "hypervisor_properties", "resource_properties"}, []string{"before_end"}},
	lease.VirtualInstance: {[]string{"vcpus", "memory_mb", "disk_gb", "amount", "affinity", "resource_properties"}, nil},
	lease.FlavorInstance:  {[]string{"amount", "flavor_id"}, []string{"affinity"}},
	lease.FloatingIP:      {[]string{"network_id", "amount"}, []string{"required_floatingips"}},
}

// reservationFields are all that a PUT may name of a reservation. What its type does not know is not looked at.
var reservationFields = append([]string{"id", "resource_type", "flavor_id"}, slices.Collect(maps.Keys(readers))...)

// readers read one field each.
var readers = map[string]func(o object, name string, c *lease.ReservationChange) error{
	"min":                   reads32(func(c *lease.ReservationChange) **int { return &c.Min }),
	"max":                   reads32(func(c *lease.ReservationChange) **int { return &c.Max }),
	"amount":                reads32(func(c *lease.ReservationChange) **int { return &c.Amount }),
	"vcpus":                 reads64(func(c *lease.ReservationChange) **int64 { return &c.VCPUs }),
	"memory_mb":             reads64(func(c *lease.ReservationChange) **int64 { return &c.MemoryMB }),
	"disk_gb":               reads64(func(c *lease.ReservationChange) **int64 { return &c.DiskGB }),
	"hypervisor_properties": readsText(func(c *lease.ReservationChange) **string { return &c.HypervisorProperties }),
	"resource_properties":   readsText(func(c *lease.ReservationChange) **string { return &c.ResourceProperties }),
	"before_end":            readsText(func(c *lease.ReservationChange) **string { return &c.BeforeEnd }),
	"affinity":              readAffinity,
	"network_id":            readNetwork,
	"required_floatingips":  readRequired,
}

func reads32(to func(*lease.ReservationChange) **int) func(object, string, *lease.ReservationChange) error {
	return func(o object, name string, c *lease.ReservationChange) error {
		n, err := o.number(name)
		*to(c) = &n
		return err
	}
}

func reads64(to func(*lease.ReservationChange) **int64) func(object, string, *lease.ReservationChange) error {
	return func(o object, name string, c *lease.ReservationChange) error {
		n, err := o.number(name)
		wide := int64(n)
		*to(c) = &wide
		return err
	}
}

func readsText(to func(*lease.ReservationChange) **string) func(object, string, *lease.ReservationChange) error {
	return func(o object, name string, c *lease.ReservationChange) error {
		s, err := o.text(name)
		*to(c) = &s
		return err
	}
}

// readAffinity reads a boolean, or one of the words for it. Null and "None" mean that it does not matter.
func readAffinity(o object, name string, c *lease.ReservationChange) error {
	word := strings.ToLower(strings.Trim(string(bytes.TrimSpace(o[name])), `" `))
	a := lease.Apart
	switch {
	case slices.Contains([]string{"true", "1", "t", "y", "yes", "on"}, word):
		a = lease.Together
	case slices.Contains([]string{"", "null", "none"}, word):
		a = lease.Anywhere
	case !slices.Contains([]string{"false", "0", "f", "n", "no", "off"}, word):
		return lease.Refuse(lease.MalformedParameter, "Malformed parameter affinity: it must be True, False or None.")
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
		return id, lease.Refuse(lease.MalformedParameter, "Malformed parameter %s: %s is no UUID.", name, short(text))
	}
	return id, nil
}

// address reads an IP address.
func address(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" || ip.Is4In6() {
		return ip, lease.Refuse(lease.MalformedParameter, "%s is not a valid IP address.", short(text))
	}
	return ip, nil
}

func readRequired(o object, name string, c *lease.ReservationChange) error {
	var texts []string
	if err := json.Unmarshal(o[name], &texts); err != nil {
		return lease.Refuse(lease.MalformedParameter, "Malformed parameter %s: it must be a list of addresses.", name)
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

// reservationValues reads those values of a reservation that are there.
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

// reservationDraft reads a reservation of a new lease.
func (b *room) reservationDraft(ctx context.Context, o object) (d lease.ReservationDraft, err error) {
	if err := o.need("resource_type"); err != nil {
		return d, err
	}
	if d.Type, err = o.text("resource_type"); err != nil {
		return d, err
	}
	f, ok := forms[d.Type]
	if !ok {
		return d, lease.Refuse(lease.UnsupportedType, "The resource type %s is not supported.", short(d.Type))
	}
	if err := o.only(slices.Concat([]string{"resource_type"}, f.must, f.may)...); err != nil {
		return d, err
	}
	if _, null := o["affinity"]; null && !o.has("affinity") {
		o["affinity"] = []byte(`"None"`)
	}
	if err := o.need(f.must...); err != nil {
		return d, err
	}
	var c lease.ReservationChange
	if err := reservationValues(o, &c); err != nil {
		return d, err
	}
	if d.Type == lease.PhysicalHost {
		d.BeforeEnd = "default"
	}
	c.Apply(&d)
	if d.Type == lease.FlavorInstance {
		d.Flavor, err = b.flavor(ctx, o, d)
	}
	return d, err
}

// flavor asks Nova for the flavor of a reservation, if the rest of it is right.
func (b *room) flavor(ctx context.Context, o object, d lease.ReservationDraft) (*lease.Flavor, error) {
	id, err := o.text("flavor_id")
	if err != nil {
		return nil, err
	}
	if id == "" || len(id) > math.MaxUint8 {
		return nil, lease.Refuse(lease.UnknownFlavor, "Flavor %s could not be found.", short(id))
	}
	d.Flavor = &lease.Flavor{ID: id}
	if err := lease.CheckReservation(d); err != nil {
		return nil, err
	}
	if b.Flavor == nil {
		return nil, lease.Refuse(lease.UnsupportedType, "The resource type %s is not supported without Nova.", d.Type)
	}
	f, err := b.Flavor(ctx, id)
	var fault *lease.Fault
	if err != nil && !errors.As(err, &fault) {
		slog.ErrorContext(ctx, "Nova does not tell of a flavor", "flavor", id, "error", err)
		return nil, osapi.Fault(http.StatusServiceUnavailable, "", "Nova does not tell of flavor %s now; try again.", short(id))
	}
	return &f, err
}

// reservationView is what the views of all reservations share.
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
	Flavor             string  `json:"flavor_id"` // which servers are made with
	Aggregate          *int64  `json:"aggregate_id"`
	ServerGroup        *string `json:"server_group_id"`
}

type addressReservationView struct {
	reservationView
	Network  string       `json:"network_id"`
	Amount   int          `json:"amount"`
	Required []netip.Addr `json:"required_floatingips"`
}

// reservationViewOf is flat: what its type asks for stands beside what all have.
func reservationViewOf(of string, r lease.Reservation) any {
	v := reservationView{ID: r.ID.String(), Lease: of, ResourceID: r.ID.String(), ResourceType: r.Type, Status: r.Status,
		MissingResources: r.MissingResources, ResourcesChanged: r.ResourcesChanged, CreatedAt: stamp(r.CreatedAt),
		UpdatedAt: stampOrNull(r.UpdatedAt)}
	switch r.Type {
	case lease.FloatingIP:
		return addressReservationView{v, r.Network.String(), r.Amount, append([]netip.Addr{}, r.Required...)}
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
	i := instanceReservationView{reservationView: v, VCPUs: r.VCPUs, MemoryMB: r.MemoryMB, DiskGB: r.DiskGB, Amount: r.Amount,
		ResourceProperties: r.ResourceProperties, Flavor: r.ID.String(), Aggregate: r.AggregateID}
	if r.Affinity != lease.Anywhere {
		together := r.Affinity == lease.Together
		i.Affinity = &together
	}
	if r.ServerGroupID != "" {
		i.ServerGroup = &r.ServerGroupID
	}
	return i
}
