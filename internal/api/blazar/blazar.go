// Package blazar answers in the words of Blazar's REST API v1: leases, hosts, their allocations and properties,
// and floating IPs.
// The wire format lives here; the rules live in lease, the rows in store.
package blazar

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/lease"
	"berth/internal/store"
)

const prefix = "/reservation"

// deletion is how long a DELETE waits for the lease to be gone before it answers that it is on its way.
const deletion = 5 * time.Second

// room is what handlers need.
type room struct {
	Options
	deletion time.Duration
}

// Options are what the API needs of others.
type Options struct {
	Store    *store.Store
	Identity identity.Authenticator
	// Flavor is Nova's flavor of that name or ID, a *lease.Fault if there is none. Without it nobody can reserve
	// instances of a flavor.
	Flavor func(ctx context.Context, id string) (lease.Flavor, error)
	// Enforce, if set, tells why somebody else refuses a lease; nothing if he does not.
	Enforce func(ctx context.Context, c Check) (refusal string)
}

// New mounts the API below /reservation.
func New(o Options) *osapi.API { return newAPI(&room{Options: o, deletion: deletion}) }

func newAPI(b *room) *osapi.API {
	api := &osapi.API{Prefix: prefix, Identity: b.Identity, Fail: fail, MissingRoute: missing}
	for _, path := range []string{"/", "/versions"} {
		api.Routes = append(api.Routes, osapi.Route{Method: http.MethodGet, Path: path, Open: true, Handle: versions})
	}
	for _, e := range b.endpoints() {
		for _, path := range []string{e.path, e.path + ".json"} {
			api.Routes = append(api.Routes, osapi.Route{Method: e.method, Path: path, Handle: e.serve()})
			if strings.HasSuffix(path, "}") {
				break // the handler takes .json off its last segment
			}
		}
	}
	return api
}

// endpoint is one row of the API's table: who may call it is part of it.
type endpoint struct {
	method, path string
	rule         string // the name of its policy
	allowed      func(identity.Caller) bool
	handle       osapi.Handler
}

func (b *room) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/leases", "leases:get", reads, b.listLeases},
		{"POST", "/v1/leases", "leases:post", writes, b.createLease},
		{"GET", "/v1/leases/{id}", "leases:get", reads, b.showLease},
		{"PUT", "/v1/leases/{id}", "leases:put", writes, b.updateLease},
		{"DELETE", "/v1/leases/{id}", "leases:delete", writes, b.deleteLease},
		{"POST", "/v1/plans", "leases:post", writes, b.planLease},
		{"GET", "/v1/os-hosts", "oshosts:get", administers, b.listHosts},
		{"POST", "/v1/os-hosts", "oshosts:post", administers, b.createHost},
		{"GET", "/v1/os-hosts/allocations", "oshosts:get_allocations", administers, b.listAllocations},
		{"GET", "/v1/os-hosts/properties", "oshosts:get_resource_properties", administers, b.listProperties},
		{"PATCH", "/v1/os-hosts/properties/{id}", "oshosts:patch_resource_properties", administers, b.updateProperty},
		{"GET", "/v1/os-hosts/{id}", "oshosts:get", administers, b.showHost},
		{"PUT", "/v1/os-hosts/{id}", "oshosts:put", administers, b.updateHost},
		{"DELETE", "/v1/os-hosts/{id}", "oshosts:delete", administers, b.deleteHost},
		{"GET", "/v1/os-hosts/{id}/allocation", "oshosts:get_allocations", administers, b.showAllocation},
		{"GET", "/v1/floatingips", "floatingips:get", reads, b.listAddresses},
		{"POST", "/v1/floatingips", "floatingips:post", administers, b.createAddress},
		{"GET", "/v1/floatingips/{id}", "floatingips:get", reads, b.showAddress},
		{"DELETE", "/v1/floatingips/{id}", "floatingips:delete", administers, b.deleteAddress},
	}
}

func reads(c identity.Caller) bool {
	return c.Admin() || c.Project != "" && (c.Has("reader") || c.Has("member"))
}
func writes(c identity.Caller) bool      { return c.Admin() || c.Project != "" && c.Has("member") }
func administers(c identity.Caller) bool { return c.Admin() }

// serve wraps the handler with what all of v1 share: the microversion, the media type, the policy, and the
// translation of refusals.
func (e endpoint) serve() osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if err := negotiate(r.Header); err != nil {
			return 0, nil, err
		}
		h := osapi.Header(r.Context())
		h.Set("OpenStack-API-Version", "reservation 1.0")
		h.Add("Vary", "OpenStack-API-Version")
		if err := checkMedia(r); err != nil {
			return 0, nil, err
		}
		if !e.allowed(identity.From(r.Context())) {
			return 0, nil, forbidden(e.rule)
		}
		r.SetPathValue("id", strings.TrimSuffix(r.PathValue("id"), ".json"))
		status, body, err := e.handle(r)
		return status, body, translate(err)
	}
}

func forbidden(rule string) *osapi.Error {
	return osapi.Fault(http.StatusForbidden, "", "Policy doesn't allow blazar:%s to be performed.", rule)
}

var microversion = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// negotiate refuses every microversion of the service reservation but 1.0.
func negotiate(h http.Header) error {
	for offer := range strings.SplitSeq(strings.Join(h.Values("OpenStack-API-Version"), ","), ",") {
		service, version, _ := strings.Cut(strings.TrimSpace(offer), " ")
		version = strings.TrimSpace(version)
		switch {
		case service != "reservation" || version == "latest" || version == "1.0":
		case !microversion.MatchString(version):
			return osapi.Fault(http.StatusBadRequest, framework, "API Version String '%s' is of invalid format. Must be of format MajorNum.MinorNum.", version)
		default:
			return osapi.Fault(http.StatusNotAcceptable, framework, "Version %s is not supported by the API. Minimum is 1.0 and maximum is 1.0.", version)
		}
	}
	return nil
}

func checkMedia(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if header == "" || r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return nil
	}
	if media, _, err := mime.ParseMediaType(header); err != nil || media != "application/json" {
		return osapi.Fault(http.StatusBadRequest, framework, "Content type '%s' isn't supported; use application/json.", header)
	}
	return nil
}

// framework marks refusals that come before any handler: they have a shape of their own.
const framework = "framework"

func missing(*http.Request) *osapi.Error {
	return osapi.Fault(http.StatusNotFound, framework, "The requested URL was not found on the server.")
}

// statuses is the one table from the kinds of refusal to HTTP.
var statuses = map[lease.Kind]int{
	lease.InvalidInput:          http.StatusBadRequest,
	lease.MissingParameter:      http.StatusBadRequest,
	lease.MalformedParameter:    http.StatusBadRequest,
	lease.MalformedRequirements: http.StatusBadRequest,
	lease.UnsupportedType:       http.StatusBadRequest,
	lease.UnknownReservation:    http.StatusBadRequest,
	lease.NotAuthorized:         http.StatusForbidden,
	lease.UnknownHost:           http.StatusNotFound,
	lease.NotEnoughHosts:        http.StatusConflict,
	lease.NotEnoughAddresses:    http.StatusBadRequest,
	lease.UnknownNetwork:        http.StatusNotFound,
	lease.UnknownFlavor:         http.StatusNotFound,
	lease.AddressInUse:          http.StatusConflict,
	lease.CannotUpdate:          http.StatusConflict,
	lease.InvalidStatus:         http.StatusConflict,
	lease.HostInUse:             http.StatusConflict,
}

func translate(err error) error {
	var fault *lease.Fault
	if !errors.As(err, &fault) {
		return err
	}
	status, ok := statuses[fault.Kind]
	if !ok {
		return fmt.Errorf("a refusal without a status: %w", err)
	}
	return osapi.Fault(status, "", "%s", fault.Message)
}

// fail writes a refusal in the shape that its origin promises.
func fail(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
	switch {
	case e.Status == http.StatusUnauthorized:
		osapi.WriteJSON(w, e.Status, map[string]any{"error": map[string]any{"code": e.Status, "title": "Unauthorized", "message": e.Message}})
	case e.Type == framework || e.Allow != "":
		osapi.WriteJSON(w, e.Status, map[string]any{"error": e.Status, "error_message": e.Message})
	case e.Status == http.StatusInternalServerError:
		osapi.WriteJSON(w, e.Status, refusal{e.Status, "Internal Server Error", "INTERNAL_SERVER_ERROR"})
	default:
		osapi.WriteJSON(w, e.Status, refusal{e.Status, e.Message, e.Status})
	}
}

type refusal struct {
	Code    int    `json:"error_code"`
	Message string `json:"error_message"`
	Name    any    `json:"error_name"`
}

// versions is the version document. It says what is there.
func versions(r *http.Request) (int, any, error) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return http.StatusMultipleChoices, map[string]any{"versions": []any{map[string]any{
		"id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": "1.0",
		"links": []any{map[string]any{"rel": "self", "href": scheme + "://" + r.Host + prefix + "/v1"}},
	}}}, nil
}
