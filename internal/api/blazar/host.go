package blazar

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/lease"
	"berth/internal/store/db"
)

// hostViewOf returns the JSON object of a host. The extra capabilities of a host are also fields of the
// host's JSON object. If an extra capability has the same name as another field, the value of the capability
// replaces the value of the field.
func hostViewOf(h lease.Host) map[string]any {
	v := map[string]any{
		"id":                  strconv.FormatInt(h.ID, 10),
		"hypervisor_hostname": h.Hostname,
		"service_name":        h.ServiceName,
		"hypervisor_type":     h.HypervisorType,
		"hypervisor_version":  h.HypervisorVersion,
		"vcpus":               h.VCPUs,
		"memory_mb":           h.MemoryMB,
		"local_gb":            h.LocalGB,
		"cpu_info":            h.CPUInfo,
		"availability_zone":   h.AvailabilityZone,
		"reservable":          h.Reservable,
		"status":              nil,
		"trust_id":            nil,
		"created_at":          stamp(h.CreatedAt),
		"updated_at":          stampOrNull(h.UpdatedAt),
	}
	for key, value := range h.Capabilities {
		v[key] = value
	}
	return v
}

// quarantineAttribute is an attribute of a host that berth has in addition to Blazar's. Only the JSON object
// of a quarantined host has it.
const quarantineAttribute = "berth:quarantine"

// hostResponse returns the JSON object of a host, with a sentence that says which lease has failed to release
// the host, if there is one.
func hostResponse(h lease.Host) map[string]any {
	v := hostViewOf(h)
	if h.Quarantine != nil {
		v[quarantineAttribute] = h.Quarantine.Sentence(time.Now())
	}
	return v
}

func (b *handler) listHosts(r *http.Request) (int, any, error) {
	return list[lease.Host]{
		name: "hosts",
		noun: "host",
		read: shorterIsLast(func(ctx context.Context, after lease.Host, most int) ([]lease.Host, error) {
			return b.Store.HostPage(ctx, after.ID, most)
		}),
		find: b.findHost,
		view: func(h lease.Host) any { return hostResponse(h) },
	}.answer(r)
}

// findHost returns the host with the given number.
func (b *handler) findHost(ctx context.Context, number string) (lease.Host, error) {
	id, ok := parseHostID(number)
	if !ok {
		return lease.Host{}, db.ErrNotFound
	}
	return b.Store.Host(ctx, id)
}

func (b *handler) createHost(r *http.Request) (int, any, error) {
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	key := "name"
	if !o.has(key) {
		key = "id"
	}
	if !o.has(key) {
		return 0, nil, osapi.Fault(http.StatusForbidden, "",
			"A host is registered by its name: the parameter name is missing.")
	}
	name, err := o.text(key)
	if err != nil {
		return 0, nil, err
	}
	delete(o, "name")
	delete(o, "id")
	extras, err := capabilities(o)
	if err != nil {
		return 0, nil, err
	}
	hypervisor, err := b.hypervisor(r.Context(), name)
	if err != nil {
		return 0, nil, err
	}
	h, err := b.Store.RegisterHost(r.Context(), hypervisor, extras)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, map[string]any{"host": hostResponse(h)}, nil
}

// hypervisor asks Nova for the hypervisor with the given name. The parameter `name` can also be the UUID of
// the hypervisor's root provider.
func (b *handler) hypervisor(ctx context.Context, name string) (lease.Hypervisor, error) {
	if b.Hypervisors == nil {
		return lease.Hypervisor{Hostname: name}, nil
	}
	all, err := b.Hypervisors(ctx)
	if err != nil {
		slog.ErrorContext(ctx, "Listing Nova's hypervisors failed", "host", name, "error", err)
		return lease.Hypervisor{}, osapi.Fault(http.StatusServiceUnavailable, "",
			"Nova cannot be asked about host %s now. Try again later.", excerpt(name))
	}
	h, unknown := lease.FindHypervisor(all, excerpt(name))
	id, isUUID := osapi.UUID(name)
	if unknown == nil || !isUUID {
		return h, unknown
	}
	hostname, err := b.Store.HypervisorHostname(ctx, id)
	if errors.Is(err, db.ErrNotFound) {
		return h, unknown
	}
	if err != nil {
		return h, err
	}
	return lease.FindHypervisor(all, hostname)
}

func (b *handler) showHost(r *http.Request) (int, any, error) {
	id, err := hostID(r)
	if err != nil {
		return 0, nil, err
	}
	h, err := b.Store.Host(r.Context(), id)
	if err != nil {
		return 0, nil, noHost(r, err)
	}
	return http.StatusOK, map[string]any{"host": hostResponse(h)}, nil
}

func (b *handler) updateHost(r *http.Request) (int, any, error) {
	id, err := hostID(r)
	if err != nil {
		return 0, nil, err
	}
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	if len(o) == 0 {
		return 0, nil, lease.Faultf(lease.MissingParameter,
			"Nothing to update: the body names no capability.")
	}
	extras, err := capabilities(o)
	if err != nil {
		return 0, nil, err
	}
	h, err := b.Store.UpdateHost(r.Context(), id, extras)
	if err != nil {
		return 0, nil, noHost(r, err)
	}
	return http.StatusOK, map[string]any{"host": hostResponse(h)}, nil
}

func (b *handler) deleteHost(r *http.Request) (int, any, error) {
	id, err := hostID(r)
	if err != nil {
		return 0, nil, err
	}
	if err := b.Store.DeleteHost(r.Context(), id); err != nil {
		return 0, nil, noHost(r, err)
	}
	return noContent(r)
}

// hostID returns the host's number from the path.
func hostID(r *http.Request) (int64, error) {
	text := r.PathValue("id")
	id, ok := parseHostID(text)
	if !ok {
		return 0, objectNotFound("host", text)
	}
	return id, nil
}

func parseHostID(text string) (id int64, ok bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}

func noHost(r *http.Request, err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return objectNotFound("host", r.PathValue("id"))
	}
	return err
}

type useView struct {
	Resource     string      `json:"resource_id"`
	Reservations []claimView `json:"reservations"`
}

type claimView struct {
	ID        string `json:"id"`
	Lease     string `json:"lease_id"`
	StartDate string `json:"start_date"`
	EndDate   string `json:"end_date"`
}

func useViewOf(u lease.HostAllocation) useView {
	return newUseView(strconv.FormatInt(u.Host, 10), u.Reservations)
}

// newUseView returns the JSON object of a host, network segment or device with its reservations.
func newUseView(resource string, reservations []lease.AllocatedReservation) useView {
	v := useView{Resource: resource, Reservations: []claimView{}}
	for _, r := range reservations {
		v.Reservations = append(v.Reservations, claimView{
			ID:        r.ID.String(),
			Lease:     r.Lease.String(),
			StartDate: date(r.StartAt),
			EndDate:   date(r.EndAt),
		})
	}
	return v
}

func (b *handler) listAllocations(r *http.Request) (int, any, error) {
	filter := useFilter(r)
	return list[lease.HostAllocation]{
		name: "allocations",
		noun: "host",
		read: shorterIsLast(
			func(ctx context.Context, after lease.HostAllocation, most int) ([]lease.HostAllocation, error) {
				filter.AfterHost, filter.Limit = after.Host, most
				return b.Store.HostAllocations(ctx, filter)
			},
		),
		find: func(ctx context.Context, marker string) (lease.HostAllocation, error) {
			h, err := b.findHost(ctx, marker)
			return lease.HostAllocation{Host: h.ID}, err
		},
		view: func(u lease.HostAllocation) any { return useViewOf(u) },
	}.answer(r)
}

func (b *handler) showAllocation(r *http.Request) (int, any, error) {
	id, err := hostID(r)
	if err != nil {
		return 0, nil, err
	}
	f := useFilter(r)
	f.Host = id
	all, err := b.Store.HostAllocations(r.Context(), f)
	if err != nil {
		return 0, nil, err
	}
	if id == 0 || len(all) == 0 {
		return 0, nil, objectNotFound("host", r.PathValue("id"))
	}
	return http.StatusOK, map[string]any{"allocation": useViewOf(all[0])}, nil
}

// useFilter makes a filter of host allocations from the query. If the value of a query parameter is not a
// UUID, the filter matches no allocation.
func useFilter(r *http.Request) lease.AllocationFilter {
	id := func(name string) string {
		text := r.URL.Query().Get(name)
		if _, ok := osapi.UUID(text); text != "" && !ok {
			return uuid.Nil.String()
		}
		return text
	}
	return lease.AllocationFilter{Lease: id("lease_id"), Reservation: id("reservation_id")}
}

func (b *handler) listProperties(r *http.Request) (int, any, error) {
	query := r.URL.Query()
	all, err := b.Store.HostProperties(r.Context(), query.Get("all") != "")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, propertiesView(all, query.Get("detail") != ""), nil
}

// propertiesView returns the list of the properties of a resource type.
func propertiesView(all []lease.ResourceProperty, detail bool) map[string]any {
	views := make([]any, len(all))
	for i, p := range all {
		v := map[string]any{"property": p.Name}
		if detail {
			v["private"], v["values"] = p.Private, p.Values
		}
		views[i] = v
	}
	return map[string]any{"resource_properties": views}
}

func (b *handler) updateProperty(r *http.Request) (int, any, error) {
	return updatePrivate(r, lease.PhysicalHost, b.Store.SetHostPropertyPrivate)
}

// updatePrivate reads from the request body whether a property of a resource type is private, and stores the
// value with the function `set`.
func updatePrivate(
	r *http.Request,
	typ string,
	set func(ctx context.Context, name string, private bool) (lease.ResourceProperty, error),
) (int, any, error) {
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	if err := o.only("private"); err != nil {
		return 0, nil, err
	}
	var private *bool
	if json.Unmarshal(o["private"], &private) != nil || private == nil {
		return 0, nil, lease.Faultf(lease.MalformedParameter,
			"Malformed parameter private: it must be true or false.")
	}
	name := r.PathValue("id")
	p, err := set(r.Context(), name, *private)
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil, objectNotFound("resource_property", name)
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"resource_property": map[string]any{
		"id":            p.ID.String(),
		"resource_type": typ,
		"property_name": p.Name,
		"private":       p.Private,
		"created_at":    date(p.CreatedAt),
		"updated_at":    dateOrNull(p.UpdatedAt),
	}}, nil
}
