// Package osapi holds the manners that the OpenStack APIs share: routing with exact 404 and 405, request IDs,
// authentication, bounded and strict JSON bodies, errors in the shape of each API. It knows no noun.
package osapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/store"
)

// Handler answers one request: a status, a body that becomes JSON (nil for none; []byte goes out as it is), or
// an error. Headers are set through Header(r.Context()).
type Handler func(r *http.Request) (int, any, error)

// Route is one method of one path. A segment in braces matches anything but a slash and is read with
// r.PathValue.
type Route struct {
	Method  string
	Path    string // below the API's prefix, "/" for the prefix itself
	Handle  Handler
	Open    bool // the path answers without credentials, be it that this method is not allowed
	Gateway bool // bodies of up to MaxBatch instead of MaxBody bytes
}

// API is one mounted service.
type API struct {
	Prefix   string                 // "/placement"
	Identity identity.Authenticator // who calls
	Routes   []Route
	// Fail writes a refusal in the API's own shape. The status is e.Status.
	Fail func(w http.ResponseWriter, r *http.Request, e *Error)
	// Before, if set, runs before the route is looked up, for what the whole API negotiates (microversions).
	// It may replace the request's context by returning another request.
	Before func(r *http.Request) (*http.Request, error)
	// MissingRoute, if set, makes the refusal of an unknown path.
	MissingRoute func(r *http.Request) *Error
}

type contextKey int

const (
	requestIDKey contextKey = iota
	headerKey
)

// RequestID is the ID under which the log knows the request: "req-" and a UUID.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// Header is the header of the answer to the request with that context.
func Header(ctx context.Context) http.Header {
	h, _ := ctx.Value(headerKey).(http.Header)
	return h
}

// ServeHTTP routes a request and writes its answer. A panic of a handler costs that request a 500, not the
// process.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := "req-" + uuid.NewString()
	w.Header().Set("X-Openstack-Request-Id", id)
	ctx := context.WithValue(r.Context(), requestIDKey, id)
	ctx = context.WithValue(ctx, headerKey, w.Header())
	r = r.WithContext(ctx)
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "panic in handler", "request_id", id, "panic", p, "stack", string(debug.Stack()))
			a.Fail(w, r, Fault(http.StatusInternalServerError, "", "The server failed to perform the requested operation (%s).", id))
		}
	}()
	status, body, err := a.answer(w, &r)
	if err != nil {
		e := statusOf(r.Context(), err)
		if e.Allow != "" {
			w.Header().Set("Allow", e.Allow)
		}
		if c, ok := a.Identity.(identity.Challenger); ok && e.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", c.Challenge())
		}
		a.Fail(w, r, brief(e))
		return
	}
	write(w, status, body)
}

// answer finds the route and runs it. The request it leaves behind carries what was negotiated.
func (a *API) answer(w http.ResponseWriter, rp **http.Request) (int, any, error) {
	r := *rp
	route, allow, open := a.match(r)
	if !open {
		caller, err := a.Identity.Authenticate(r)
		if err != nil {
			return 0, nil, err
		}
		if !nameable(caller.User) || !nameable(caller.Project) {
			return 0, nil, fmt.Errorf("%w: user or project is no name", identity.ErrUnauthenticated)
		}
		r = r.WithContext(store.As(identity.With(r.Context(), caller), caller.User+"/"+caller.Project))
		*rp = r
	}
	if a.Before != nil {
		next, err := a.Before(r)
		if err != nil {
			return 0, nil, err
		}
		r = next
		*rp = r
	}
	if !Legible(r.URL.Path) {
		route, allow = nil, nil
	}
	switch {
	case route != nil:
		if err := checkQuery(r); err != nil {
			return 0, nil, err
		}
		limit := int64(MaxBody)
		if route.Gateway {
			limit = MaxBatch
		}
		defer admit(w, r, limit)()
		return route.Handle(r)
	case allow != nil:
		return 0, nil, &Error{Status: http.StatusMethodNotAllowed, Allow: strings.Join(allow, ", "),
			Message: "The method " + r.Method + " is not allowed for this resource."}
	case a.MissingRoute != nil:
		return 0, nil, a.MissingRoute(r)
	default:
		return 0, nil, Fault(http.StatusNotFound, "", "The resource could not be found.")
	}
}

// Legible tells whether a text is UTF-8 without NUL: what a database can keep, and all that names ever are.
func Legible(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// maxName is how long the names of users and projects may be, in bytes: what an index and a search attribute take.
const maxName = 255

func nameable(s string) bool { return Legible(s) && len(s) <= maxName }

// checkQuery refuses a query that cannot be decoded or is not text.
func checkQuery(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Fault(http.StatusBadRequest, "", "Invalid query string: %s.", err)
	}
	for name, values := range query {
		for _, v := range append(values, name) {
			if !Legible(v) {
				return Fault(http.StatusBadRequest, "", "Invalid query string: %q is not UTF-8 text.", v)
			}
		}
	}
	return nil
}

// match finds the route of a request and fills in its path values; without one it tells which methods the path
// has, nil for an unknown path; and whether the path is open to everyone.
func (a *API) match(r *http.Request) (_ *Route, allow []string, open bool) {
	path := strings.TrimPrefix(r.URL.Path, a.Prefix)
	if path == "" {
		path = "/"
	}
	segments := strings.Split(path, "/")
	for i := range a.Routes {
		route := &a.Routes[i]
		if !fits(route.Path, segments, nil) {
			continue
		}
		if route.Method == r.Method {
			fits(route.Path, segments, r.SetPathValue)
			return route, nil, route.Open
		}
		open = open || route.Open
		if !slices.Contains(allow, route.Method) {
			allow = append(allow, route.Method)
		}
	}
	slices.Sort(allow)
	return nil, allow, open
}

// fits matches the segments of a path against a route's pattern, literal ones exactly, and hands the others to set,
// unless it is nil. Patterns are tried in the order of the table, so a literal one stands before a pattern that it
// also fits.
func fits(pattern string, segments []string, set func(name, value string)) bool {
	i := 0
	for part := range strings.SplitSeq(pattern, "/") {
		if i == len(segments) {
			return false
		}
		name, variable := strings.CutPrefix(part, "{")
		switch {
		case !variable && part != segments[i], variable && segments[i] == "":
			return false
		case variable && set != nil:
			set(strings.TrimSuffix(name, "}"), segments[i])
		}
		i++
	}
	return i == len(segments)
}

func write(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			slog.Error("encode answer", "error", err)
			status, raw = http.StatusInternalServerError, []byte(`{}`)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// WriteJSON is for an API's Fail: a status and a body.
func WriteJSON(w http.ResponseWriter, status int, body any) { write(w, status, body) }

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// UUID reads a UUID in its canonical form; ok is false for any other text.
func UUID(s string) (id uuid.UUID, ok bool) {
	if !canonicalUUID.MatchString(s) {
		return uuid.Nil, false
	}
	return uuid.MustParse(s), true
}
