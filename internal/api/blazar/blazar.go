// Package blazar implements Blazar's REST API v1: leases, hosts with their allocations and properties, and
// floating IPs. It also serves the network segments and devices that only Chameleon's fork of Blazar has.
// Package internal/lease contains the rules of leases; package internal/store/leasestore reads and writes the
// rows of leases.
package blazar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/version"
)

const prefix = "/reservation"

// deletionWait is how long the handler of DELETE waits for the end of a lease's deletion before it answers
// 202.
const deletionWait = 5 * time.Second

// handler handles the requests of all routes.
type handler struct {
	Options
	deletionWait time.Duration
	plans        runningPlans
	flavorReads  *osapi.ClientSlots // for requests to Nova
}

// Numbers of requests that ask Nova for flavors at the same time, in all and of one project. Each of them
// sends one request after another to Nova.
const (
	maxFlavorReads      = 16
	flavorReadsOfClient = 2
)

// Options are the dependencies of the API.
type Options struct {
	Store    *leasestore.Store
	Identity identity.Authenticator
	// Policy decides who may do what. If Policy is nil, the default rules decide.
	Policy *policy.Policy
	// Flavor reads the flavor with the given ID from Nova. Flavor returns a *lease.Fault if Nova has no
	// flavor with this ID, or if the project may not use the flavor; the empty project may use every flavor.
	// If the option Flavor is nil, leases cannot reserve instances of a flavor.
	Flavor func(ctx context.Context, project, id string) (lease.Flavor, error)
	// Hypervisors lists Nova's hypervisors. If Hypervisors is nil, berth runs without Nova, and the name of a
	// host is the name of its root provider in Placement.
	Hypervisors func(ctx context.Context) ([]lease.Hypervisor, error)
	// Enforce, if set, asks an external service about a lease. Enforce returns the reason why the external
	// service refuses the lease, or "" if the service allows the lease.
	Enforce func(ctx context.Context, c Check) (refusal string)
}

// New returns the API, whose paths begin with /reservation.
func New(o Options) *osapi.API { return newAPI(&handler{Options: o, deletionWait: deletionWait}) }

func newAPI(b *handler) *osapi.API {
	if b.Policy == nil {
		b.Policy = policy.MustOpen(Policy...)
	}
	b.flavorReads = osapi.NewClientSlots(maxFlavorReads, flavorReadsOfClient)
	api := &osapi.API{
		Prefix:       prefix,
		Identity:     b.Identity,
		Fail:         fail,
		MissingRoute: missingRoute,
	}
	for _, path := range []string{"/", "/versions"} {
		api.Routes = append(api.Routes, osapi.Route{
			Method: http.MethodGet,
			Path:   path,
			Open:   true,
			Handle: versions,
		})
	}
	for _, e := range b.endpoints() {
		for _, path := range []string{e.path, e.path + ".json"} {
			api.Routes = append(api.Routes, osapi.Route{Method: e.method, Path: path, Handle: b.serve(e)})
			if strings.HasSuffix(path, "}") {
				break // serve removes .json from a value at the end of the path
			}
		}
	}
	return api
}

// endpoint is one HTTP method of one path, with the policy rule that decides who may call this method.
type endpoint struct {
	method, path string
	rule         string // name of the policy rule
	handle       osapi.Handler
	onLease      bool // the target of the rule is a lease that the handler reads
}

func (b *handler) endpoints() []endpoint {
	all := []endpoint{
		{
			method:  "GET",
			path:    "/v1/leases",
			rule:    "leases:get",
			handle:  b.listLeases,
			onLease: true,
		},
		{
			method: "POST",
			path:   "/v1/leases",
			rule:   "leases:post",
			handle: b.createLease,
		},
		{
			method:  "GET",
			path:    "/v1/leases/{id}",
			rule:    "leases:get",
			handle:  b.showLease,
			onLease: true,
		},
		{
			method:  "PUT",
			path:    "/v1/leases/{id}",
			rule:    "leases:put",
			handle:  b.updateLease,
			onLease: true,
		},
		{
			method:  "DELETE",
			path:    "/v1/leases/{id}",
			rule:    "leases:delete",
			handle:  b.deleteLease,
			onLease: true,
		},
		{
			method: "POST",
			path:   "/v1/plans",
			rule:   "leases:post",
			handle: b.planLease,
		},
		{
			method: "GET",
			path:   "/v1/os-hosts",
			rule:   "oshosts:get",
			handle: b.listHosts,
		},
		{
			method: "POST",
			path:   "/v1/os-hosts",
			rule:   "oshosts:post",
			handle: b.createHost,
		},
		{
			method: "GET",
			path:   "/v1/os-hosts/allocations",
			rule:   "oshosts:get_allocations",
			handle: b.listAllocations,
		},
		{
			method: "GET",
			path:   "/v1/os-hosts/properties",
			rule:   "oshosts:get_resource_properties",
			handle: b.listProperties,
		},
		{
			method: "PATCH",
			path:   "/v1/os-hosts/properties/{id}",
			rule:   "oshosts:patch_resource_properties",
			handle: b.updateProperty,
		},
		{
			method: "GET",
			path:   "/v1/os-hosts/{id}",
			rule:   "oshosts:get",
			handle: b.showHost,
		},
		{
			method: "PUT",
			path:   "/v1/os-hosts/{id}",
			rule:   "oshosts:put",
			handle: b.updateHost,
		},
		{
			method: "DELETE",
			path:   "/v1/os-hosts/{id}",
			rule:   "oshosts:delete",
			handle: b.deleteHost,
		},
		{
			method: "GET",
			path:   "/v1/os-hosts/{id}/allocation",
			rule:   "oshosts:get_allocations",
			handle: b.showAllocation,
		},
		{
			method: "GET",
			path:   "/v1/floatingips",
			rule:   "floatingips:get",
			handle: b.listAddresses,
		},
		{
			method: "POST",
			path:   "/v1/floatingips",
			rule:   "floatingips:post",
			handle: b.createAddress,
		},
		{
			method: "GET",
			path:   "/v1/floatingips/{id}",
			rule:   "floatingips:get",
			handle: b.showAddress,
		},
		{
			method: "DELETE",
			path:   "/v1/floatingips/{id}",
			rule:   "floatingips:delete",
			handle: b.deleteAddress,
		},
	}
	for _, c := range resourceCollections {
		all = append(all, collectionHandler{b, c}.endpoints()...)
	}
	return all
}

// serve wraps the endpoint's handler with the checks of all v1 routes: microversion, media type and policy.
// serve also translates the errors of package lease to HTTP errors.
func (b *handler) serve(e endpoint) osapi.Handler {
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
		r, a := b.withAccess(r)
		if !a.mayCall(e) {
			return 0, nil, forbidden(e.rule)
		}
		r.SetPathValue("id", strings.TrimSuffix(r.PathValue("id"), ".json"))
		status, body, err := e.handle(r)
		return status, body, translate(err)
	}
}

func forbidden(rule string) *osapi.Error {
	return osapi.Fault(http.StatusForbidden, "", "Policy doesn't allow %s to be performed.", ruleName(rule))
}

var microversion = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// negotiate returns an error if the request demands another microversion of the service `reservation` than
// 1.0 or "latest".
func negotiate(h http.Header) error {
	for offer := range strings.SplitSeq(strings.Join(h.Values("OpenStack-API-Version"), ","), ",") {
		service, version, _ := strings.Cut(strings.TrimSpace(offer), " ")
		version = strings.TrimSpace(version)
		switch {
		case service != "reservation" || version == "latest" || version == "1.0":
		case !microversion.MatchString(version):
			return osapi.Fault(http.StatusBadRequest, framework,
				"API Version String '%s' is of invalid format. Must be of format MajorNum.MinorNum.",
				version)
		default:
			return osapi.Fault(http.StatusNotAcceptable, framework,
				"Version %s is not supported by the API. Minimum is 1.0 and maximum is 1.0.", version)
		}
	}
	return nil
}

func checkMedia(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if header == "" ||
		r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return nil
	}
	if !osapi.IsJSON(header) {
		return osapi.Fault(http.StatusBadRequest, framework,
			"Content type '%s' isn't supported; use application/json.", header)
	}
	return nil
}

// framework is the type of the errors that Blazar's web framework returns before a handler
// runs. The JSON format of these errors differs from the format that Blazar's handlers use.
const framework = "framework"

func missingRoute(*http.Request) *osapi.Error {
	return osapi.Fault(http.StatusNotFound, framework, "The requested URL was not found on the server.")
}

// statuses maps the kinds of lease faults to HTTP statuses.
var statuses = map[lease.Kind]int{
	lease.InvalidInput:          http.StatusBadRequest,
	lease.MissingParameter:      http.StatusBadRequest,
	lease.MalformedParameter:    http.StatusBadRequest,
	lease.MalformedRequirements: http.StatusBadRequest,
	lease.UnsupportedType:       http.StatusBadRequest,
	lease.UnknownReservation:    http.StatusBadRequest,
	lease.NotAuthorized:         http.StatusForbidden,
	lease.UnknownHost:           http.StatusNotFound,
	lease.AmbiguousHost:         http.StatusConflict,
	lease.NotEnoughHosts:        http.StatusConflict,
	lease.NotEnoughAddresses:    http.StatusBadRequest,
	lease.UnknownNetwork:        http.StatusNotFound,
	lease.UnknownFlavor:         http.StatusNotFound,
	lease.AddressInUse:          http.StatusConflict,
	lease.CannotUpdate:          http.StatusConflict,
	lease.InvalidStatus:         http.StatusConflict,
	lease.HostInUse:             http.StatusConflict,
	lease.NotEnoughResources:    http.StatusConflict,
	lease.ResourceInUse:         http.StatusConflict,
	lease.SearchTooLong:         http.StatusConflict,
	lease.QuotaExceeded:         http.StatusForbidden, // as in Blazar for leases that are too long
}

func translate(err error) error {
	var fault *lease.Fault
	if !errors.As(err, &fault) {
		return err
	}
	status, ok := statuses[fault.Kind]
	if !ok {
		return fmt.Errorf("no HTTP status is defined for this error: %w", err)
	}
	return osapi.Fault(status, "", "%s", fault.Message)
}

// fail writes an error in one of Blazar's JSON formats.
func fail(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
	switch {
	case e.Status == http.StatusUnauthorized:
		osapi.WriteJSON(w, e.Status, map[string]any{
			"error": map[string]any{"code": e.Status, "title": "Unauthorized", "message": e.Message},
		})
	case e.Type == framework || e.Allow != "":
		osapi.WriteJSON(w, e.Status, map[string]any{"error": e.Status, "error_message": e.Message})
	case e.Status == http.StatusInternalServerError:
		osapi.WriteJSON(w, e.Status, errorBody{e.Status, "Internal Server Error", "INTERNAL_SERVER_ERROR"})
	default:
		osapi.WriteJSON(w, e.Status, errorBody{e.Status, e.Message, e.Status})
	}
}

type errorBody struct {
	Code    int    `json:"error_code"`
	Message string `json:"error_message"`
	Name    any    `json:"error_name"`
}

// versions answers with the version document.
func versions(r *http.Request) (int, any, error) {
	return http.StatusMultipleChoices, map[string]any{"versions": []any{map[string]any{
		"id":          "v1.0",
		"status":      "CURRENT",
		"min_version": version.Reservation.Minimum,
		"max_version": version.Reservation.Newest,
		"links":       []any{map[string]any{"rel": "self", "href": osapi.BaseURL(r) + prefix + "/v1"}},
	}}}, nil
}
