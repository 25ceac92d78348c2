// Package placement is the wire of the Placement API, microversions 1.0 to 1.39: what is read, in which order
// it is refused, and how answers look at each version. It decides nothing about providers and allocations.
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
	"berth/internal/store"
)

// Prefix is where the API is mounted.
const Prefix = "/placement"

// Options are what the API needs.
type Options struct {
	Store    *store.Store
	Identity identity.Authenticator
	Policy   *policy.Policy // knows the rules of Policy
	// Incomplete is to whom consumers belong whose owner nobody has named.
	Incomplete inventory.Owner
	Candidates Candidates
}

type room struct {
	store      *store.Store
	policy     *policy.Policy
	incomplete inventory.Owner
	candidates Candidates
}

// call is one request with the minor number of its microversion.
type call struct {
	*http.Request
	v int
}

// endpoint is one line of the API's table.
type endpoint struct {
	method, path string
	from         int    // first microversion; older ones do not have it
	rule         string // of the policy
	wants        wants
	handle       func(*room, *call) (int, any, error)
}

// wants is what an endpoint asks of a request's headers.
type wants int

const (
	anything   wants = 0
	accept     wants = 1 << iota // the client takes JSON
	body                         // the request is JSON
	bodyFirst                    // is JSON is looked at before the version
	oldBody                      // was JSON before 1.7
	lateMethod                   // older versions have the path but not the method
)

type versionKey struct{}

// New is the API over a store.
func New(o Options) *osapi.API {
	id := o.Identity
	if _, ok := id.(identity.Noauth); ok {
		id = identity.Noauth{Bare: true}
	}
	h := &room{store: o.Store, policy: o.Policy, incomplete: o.Incomplete, candidates: o.Candidates}
	api := &osapi.API{Prefix: Prefix, Identity: id, Fail: fail, Before: before}
	api.Routes = append(api.Routes, osapi.Route{Method: http.MethodGet, Path: "/", Handle: root, Open: true})
	for _, e := range endpoints {
		api.Routes = append(api.Routes, osapi.Route{Method: e.method, Path: e.path, Handle: h.serve(e)})
	}
	return api
}

// before negotiates the version and looks at what every request must have.
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

// serve checks a request in the order that the contract promises and hands it to the endpoint.
func (h *room) serve(e endpoint) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		minor, _ := r.Context().Value(versionKey{}).(int)
		c := &call{Request: r, v: minor}
		if err := c.suits(e); err != nil {
			return 0, nil, err
		}
		if err := h.allowed(c, e.rule); err != nil {
			return 0, nil, err
		}
		status, answer, err := e.handle(h, c)
		return status, answer, translate(err)
	}
}

// suits checks version and headers.
func (c *call) suits(e endpoint) error {
	isJSON := mediaType(c.Request) == "application/json"
	unsupported := fault(http.StatusUnsupportedMediaType,
		"The media type %s is not supported, use application/json", mediaType(c.Request))
	switch {
	case e.wants&bodyFirst != 0 && !isJSON:
		return unsupported
	case c.v < e.from && e.wants&lateMethod != 0:
		return fault(http.StatusMethodNotAllowed, "The method %s is not allowed for this resource.", c.Method)
	case c.v < e.from:
		return fault(http.StatusNotFound, "%s", explanations[http.StatusNotFound])
	case e.wants&body != 0 && !isJSON, e.wants&oldBody != 0 && c.v < 7 && !isJSON:
		return unsupported
	case e.wants&accept != 0 && !accepts(c.Request, "application", "json"):
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

// modified dates an answer, from 1.15 on. The zero time means now.
func (c *call) modified(at time.Time) {
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

// location says where what was created is found.
func (c *call) location(path string) {
	scheme := "http"
	if c.TLS != nil {
		scheme = "https"
	}
	osapi.Header(c.Context()).Set("Location", scheme+"://"+c.Host+Prefix+path)
}

type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

func root(r *http.Request) (int, any, error) {
	minor, _ := r.Context().Value(versionKey{}).(int)
	c := &call{Request: r, v: minor}
	c.modified(time.Time{})
	return http.StatusOK, map[string]any{"versions": []any{map[string]any{
		"id": "v1.0", "min_version": "1.0", "max_version": fmt.Sprintf("1.%d", newest), "status": "CURRENT",
		"links": []link{{Rel: "self", Href: ""}},
	}}}, nil
}
