// Package placement implements the Placement API, microversions 1.0 to 1.39: the formats of requests and
// responses at each microversion, and the order in which a request is checked. The packages
// internal/inventory and internal/store contain the rules for providers and allocations.
package placement

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
	"berth/internal/version"
)

// Prefix is the path where the API is mounted.
const Prefix = "/placement"

// Options are the dependencies and settings of the API.
type Options struct {
	Store    *inventorystore.Store
	Identity identity.Authenticator
	Policy   *policy.Policy // contains the rules of the package variable Policy
	// Incomplete is the project and user of consumers for which a client names no project or user.
	Incomplete inventory.Owner
	Candidates Candidates
}

type handler struct {
	store      *inventorystore.Store
	policy     *policy.Policy
	incomplete inventory.Owner
	candidates Candidates
}

// call is one HTTP request with the minor number of the request's microversion.
type call struct {
	*http.Request
	v   int
	raw []byte // the body, once it is decoded
}

// endpoint is one operation of the API.
type endpoint struct {
	method, path string
	from         int    // first microversion with the operation
	rule         string // name of the policy rule
	checks       headerChecks
	handle       func(*handler, *call) (int, any, error)
}

// headerChecks are the checks of an operation's request headers.
type headerChecks int

const (
	anything  headerChecks = 0
	accept    headerChecks = 1 << iota // the client must accept JSON
	body                               // the request body must be JSON
	bodyFirst                          // the check for JSON comes before the check of the microversion
	oldBody                            // the request body must be JSON if the microversion is older than 1.7
	// older microversions have the path but not this method, so they answer 405 instead of 404
	lateMethod
)

type versionKey struct{}

// New returns the Placement API, which reads and writes the given store.
func New(o Options) *osapi.API {
	id := o.Identity
	if _, ok := id.(identity.Noauth); ok {
		id = identity.Noauth{Bare: true}
	}
	h := &handler{
		store:      o.Store,
		policy:     o.Policy,
		incomplete: o.Incomplete,
		candidates: o.Candidates,
	}
	api := &osapi.API{
		Prefix:   Prefix,
		Identity: id,
		Fail:     fail,
		Before:   before,
	}
	api.Routes = append(api.Routes, osapi.Route{
		Method: http.MethodGet,
		Path:   "/",
		Handle: root,
		Open:   true,
	})
	for _, e := range endpoints {
		api.Routes = append(api.Routes, osapi.Route{Method: e.method, Path: e.path, Handle: h.serve(e)})
	}
	return api
}

// before negotiates the microversion and checks the headers of every request.
func before(r *http.Request) (*http.Request, error) {
	minor, err := negotiate(r)
	if err != nil {
		return nil, err
	}
	header := osapi.Header(r.Context())
	header.Set("OpenStack-API-Version", fmt.Sprintf("placement 1.%d", minor))
	header.Add("Vary", "openstack-api-version")
	r = r.WithContext(context.WithValue(r.Context(), versionKey{}, minor))
	if r.ContentLength > 0 && r.Header.Get("Content-Type") == "" {
		return r, fault(http.StatusBadRequest, "content-type header required when content-length > 0")
	}
	return r, nil
}

// serve checks a request in the order that clients rely on: headers, policy, body.
func (h *handler) serve(e endpoint) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		minor, _ := r.Context().Value(versionKey{}).(int)
		c := &call{Request: r, v: minor}
		if err := c.checkHeaders(e); err != nil {
			return 0, nil, err
		}
		if err := h.allowed(c, e.rule); err != nil {
			return 0, nil, err
		}
		status, answer, err := e.handle(h, c)
		return status, answer, translate(err)
	}
}

// checkHeaders checks the requested microversion and the request's headers.
func (c *call) checkHeaders(e endpoint) error {
	isJSON := mediaType(c.Request) == "application/json"
	unsupported := fault(http.StatusUnsupportedMediaType,
		"The media type %s is not supported, use application/json", mediaType(c.Request))
	switch {
	case e.checks&bodyFirst != 0 && !isJSON:
		return unsupported
	case c.v < e.from && e.checks&lateMethod != 0:
		return fault(http.StatusMethodNotAllowed, "The method %s is not allowed for this resource.", c.Method)
	case c.v < e.from:
		return fault(http.StatusNotFound, "%s", explanations[http.StatusNotFound])
	case e.checks&body != 0 && !isJSON, e.checks&oldBody != 0 && c.v < 7 && !isJSON:
		return unsupported
	case e.checks&accept != 0 && !accepts(c.Request, "application", "json"):
		return fault(http.StatusNotAcceptable, "Only application/json is provided")
	}
	return nil
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// setLastModified sets the header Last-Modified if the microversion is at least 1.15. If the parameter `at`
// is the zero time, setLastModified uses the current time.
func (c *call) setLastModified(at time.Time) {
	if c.v < 15 {
		return
	}
	if at.IsZero() {
		at = time.Now()
	}
	header := osapi.Header(c.Context())
	header.Set("Last-Modified", at.UTC().Format(http.TimeFormat))
	header.Set("Cache-Control", "no-cache")
}

// setLocation sets the header Location to the URL of a created resource.
func (c *call) setLocation(path string) {
	osapi.Header(c.Context()).Set("Location", osapi.BaseURL(c.Request)+Prefix+path)
}

type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

func root(r *http.Request) (int, any, error) {
	minor, _ := r.Context().Value(versionKey{}).(int)
	c := &call{Request: r, v: minor}
	c.setLastModified(time.Time{})
	return http.StatusOK, map[string]any{"versions": []any{map[string]any{
		"id":          "v1.0",
		"min_version": version.Placement.Minimum,
		"max_version": version.Placement.Newest,
		"status":      "CURRENT",
		"links":       []link{{Rel: "self", Href: ""}},
	}}}, nil
}
