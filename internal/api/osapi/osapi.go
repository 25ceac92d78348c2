// Package osapi is the HTTP layer that all of berth's APIs share. The HTTP layer routes requests (with the
// 404 and 405 responses of OpenStack), assigns request IDs, authenticates callers, limits the size of bodies,
// parses JSON strictly, and writes errors in the format of each API.
package osapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/panics"
	"berth/internal/store/auditstore"
	"berth/internal/store/db"
	"berth/internal/tracing"
)

// Handler answers one request with a status and a body, or with an error. The API encodes the returned body
// as JSON. If the returned body is nil, the response has no body; if it is a []byte or Shared, the API sends
// it unchanged; if it is a Stream, the Stream writes the response. A Handler sets the headers of the response
// with Header(r.Context()).
type Handler func(r *http.Request) (int, any, error)

// Route is one HTTP method of one path. A path segment in braces, such as {id}, matches any text without a
// slash; the handler reads this text with r.PathValue.
type Route struct {
	Method string
	Path   string // below the API's prefix; "/" is the prefix itself
	Handle Handler
	// Open means that no request to the path needs credentials, not even one that gets 405 because of its
	// method. The body of a request to an open path may have maxOpenBody bytes.
	Open      bool
	LargeBody bool // the body may have MaxBatch instead of MaxBody bytes
	// Repeatable means that a client may repeat the request although the outcome of the first request is
	// unknown. Methods that are idempotent in HTTP (GET, PUT, DELETE and so on) are repeatable on every
	// route.
	Repeatable bool
	// Unaudited means that the audit log has no records of the route's requests. It is for requests that many
	// programs send all the time.
	Unaudited bool
}

// API is one mounted service.
type API struct {
	Prefix   string                 // for example "/placement"
	Identity identity.Authenticator // authenticates the caller
	Routes   []Route
	// Fail writes the error e in the JSON format of the API, with the HTTP status e.Status.
	Fail func(w http.ResponseWriter, r *http.Request, e *Error)
	// Before, if set, runs before routing. The purpose of Before is to negotiate the microversion for the
	// whole API. Before may return a request with another context, which then replaces the original request.
	Before func(r *http.Request) (*http.Request, error)
	// Timeout is the maximum duration of a request; 0: no limit. A request that takes longer is answered with
	// a 503.
	Timeout time.Duration
	// Reserved means that the API uses the reserved connections to the database, because operators need the
	// API even when requests of other APIs use all other connections.
	Reserved bool
	Rate     *ProjectRate // limits the requests of each project; nil: no limit
	HostRate *HostRate    // limits the requests of the agents of each host; nil: no limit
	// records what the requests change, and which requests are refused; nil: nothing is recorded
	Audit *auditstore.Store
	// TrustedProxies are the networks of the reverse proxies whose X-Forwarded headers count; see BaseURL.
	TrustedProxies []netip.Prefix
	// MissingRoute, if set, returns the error for an unknown path.
	MissingRoute func(r *http.Request) *Error
}

type contextKey int

const (
	headerKey contextKey = iota
	proxyKey
	writeSlotKey
)

// RouteRecorder is a http.ResponseWriter that measures requests. The API tells it the path of the route of
// each request, with the names of path segments such as {id} and not their values, the caller whose
// credentials are valid, and the type of each error response.
type RouteRecorder interface {
	RecordRoute(path string)
	RecordCaller(c identity.Caller)
	RecordError(e *Error)
}

// RequestID returns the request's ID in the log and in X-Openstack-Request-Id: "req-" and a UUID.
func RequestID(ctx context.Context) string { return tracing.RequestIDsOf(ctx).ID }

// Header returns the response header of the request to which the context belongs.
func Header(ctx context.Context) http.Header {
	h, _ := ctx.Value(headerKey).(http.Header)
	return h
}

// ServeHTTP routes a request and writes its response. If a handler panics, ServeHTTP answers the request with
// a 500, and the process continues.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := "req-" + uuid.NewString()
	w.Header().Set("X-Openstack-Request-Id", id)
	client := r.Context()
	ctx := tracing.WithRequestIDs(
		client,
		tracing.RequestIDs{ID: id, Global: tracing.ValidRequestID(r.Header.Get("X-Openstack-Request-Id"))},
	)
	ctx = identity.WithAddress(
		a.withProxy(context.WithValue(ctx, headerKey, w.Header()), r),
		ClientOf(a.clientIP(r)),
	)
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout)
		defer cancel()
	}
	if a.Reserved {
		ctx = db.WithReserve(ctx)
	}
	r = r.WithContext(ctx)
	var panicked error
	defer func() {
		if panicked != nil {
			a.Fail(w, r, Fault(
				http.StatusInternalServerError,
				"",
				"The server failed to perform the requested operation (%s).",
				id,
			))
		}
	}()
	defer panics.Recover(ctx, "a handler", &panicked)
	releaseSlot := func() {}
	defer func() { releaseSlot() }()
	status, body, err := a.handle(w, &r, &releaseSlot)
	if stream, ok := body.(Stream); ok && err == nil {
		releaseSlot()
		stream(w, r.WithContext(endless{client, r.Context()}))
		return
	}
	if err == nil {
		var release func()
		body, release, err = encodeAnswer(r, body)
		defer release()
	}
	releaseSlot() // before the response waits for the client
	if err != nil {
		a.writeError(w, r, err)
		return
	}
	write(w, status, body)
}

// writeError answers a request with an error.
func (a *API) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := statusOf(r, a.isRepeatable(r), err)
	if rec, ok := w.(RouteRecorder); ok {
		rec.RecordError(e)
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Allow != "" {
		w.Header().Set("Allow", e.Allow)
	}
	a.auditDenial(r, e)
	if c, ok := a.Identity.(identity.Challenger); ok && e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", c.Challenge())
	}
	a.Fail(w, r, shorten(e))
}

// handle authenticates the request, finds its route and calls the handler. handle replaces *rp by a request
// whose context contains the caller and the negotiated microversion. If the request needs a slot, handle sets
// *releaseSlot.
func (a *API) handle(w http.ResponseWriter, rp **http.Request, releaseSlot *func()) (int, any, error) {
	r := *rp
	if !validHost(r.Host) {
		return 0, nil, Fault(http.StatusBadRequest, "", "The header Host is not a host name with or without a port.")
	}
	route, allow, open := a.match(r)
	if rec, ok := w.(RouteRecorder); ok && route != nil {
		rec.RecordRoute(route.Path)
	}
	if !open {
		caller, err := a.Identity.Authenticate(r)
		if err != nil {
			return 0, nil, err
		}
		if !validName(caller.User) || !validName(caller.Project) {
			return 0, nil, fmt.Errorf("%w: the token's user or project is not a valid name",
				identity.ErrUnauthenticated)
		}
		if rec, ok := w.(RouteRecorder); ok {
			rec.RecordCaller(caller)
		}
		r = r.WithContext(db.WithActor(identity.With(r.Context(), caller), caller.User+"/"+caller.Project))
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
	if !open { // after Before, so that the error has the format of the negotiated microversion
		c := identity.From(r.Context())
		if err := errors.Join(a.Rate.check(c, a.Prefix), a.HostRate.check(c, a.Prefix)); err != nil {
			return 0, nil, err
		}
	}
	if !ValidText(r.URL.Path) {
		route, allow = nil, nil
	}
	switch {
	case route != nil:
		defer limitBody(w, r, route)()
		return a.callHandler(r, route, open, releaseSlot)
	case allow != nil:
		return 0, nil, &Error{Status: http.StatusMethodNotAllowed, Allow: strings.Join(allow, ", "),
			Message: "The method " + r.Method + " is not allowed for this resource."}
	case a.MissingRoute != nil:
		return 0, nil, a.MissingRoute(r)
	default:
		return 0, nil, Fault(http.StatusNotFound, "", "The resource could not be found.")
	}
}

// callHandler calls the handler of a route when the request is admitted.
func (a *API) callHandler(r *http.Request, route *Route, open bool, releaseSlot *func()) (int, any, error) {
	r, err := admit(r, open, releaseSlot)
	if err != nil {
		return 0, nil, err
	}
	ctx := db.WithClient(db.WithClass(r.Context(), a.classOf(route)), databaseClient(identity.From(r.Context())))
	ctx, charge := a.Rate.countWrites(ctx)
	defer charge()
	defer forgetBody(r) // the answer may wait for the client
	return route.Handle(a.withAudit(r.WithContext(ctx), route))
}

// databaseClient returns the client of a caller for the connections to the database. Administrators and
// services are clients without a share.
func databaseClient(c identity.Caller) string {
	switch {
	case !c.AdminOrService():
		return clientName(c)
	case c.Admin():
		return db.Administrators
	default:
		return db.Services
	}
}

// admit checks the query and the unread answers of the client before the handler of a route is called. A
// request with credentials waits for a slot for reading or for writing, and admit sets *releaseSlot. admit
// returns the request for the handler.
func admit(r *http.Request, open bool, releaseSlot *func()) (*http.Request, error) {
	if err := errors.Join(checkQuery(r), checkAnswers(r)); err != nil || open {
		return r, err
	}
	if r.Method != http.MethodGet {
		return acquireWrite(r, releaseSlot)
	}
	release, err := reads.Acquire(r.Context())
	if err == nil {
		*releaseSlot = release
	}
	return r, err
}

// isRepeatable reports whether a client may repeat the request although the outcome of the first request is
// unknown.
func (a *API) isRepeatable(r *http.Request) bool {
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return true
	}
	route, _, _ := a.match(r)
	return route != nil && route.Repeatable
}

// classOf returns the class of database work to which the requests of a route belong: the reads or the writes
// of one kind of resource.
func (a *API) classOf(route *Route) string {
	kind, _, _ := strings.Cut(route.Path, "/{")
	if route.Method == http.MethodGet {
		return "read " + a.Prefix + kind
	}
	return "write " + a.Prefix + kind
}

// ValidText reports whether s is UTF-8 without NUL. ValidText exists because PostgreSQL cannot store text
// that contains NUL or is not UTF-8.
func ValidText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// maxName is the maximum length of the names of users and projects, in bytes. Names that are longer than
// maxName do not fit into database indexes and Temporal's search attributes.
const maxName = 255

func validName(s string) bool { return ValidText(s) && len(s) <= maxName }

// maxQueryValues is the maximum number of values of one query parameter.
const maxQueryValues = 1000

// checkQuery refuses a query that is malformed or not valid text, and a query parameter with too many values.
// A value that contains commas counts as a list of values.
func checkQuery(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Fault(http.StatusBadRequest, "", "Invalid query string: %s.", err)
	}
	for name, values := range query {
		count := len(values)
		for _, v := range values {
			count += strings.Count(v, ",")
		}
		if count > maxQueryValues {
			return Fault(http.StatusBadRequest, "",
				"Invalid query string: '%s' has %d values, more than %d.", name, count, maxQueryValues)
		}
		for _, v := range append(values, name) {
			if !ValidText(v) {
				return Fault(http.StatusBadRequest, "", "Invalid query string: %q is not UTF-8 text.", v)
			}
		}
	}
	return nil
}

// match finds the route of a request and sets the path values of the request. If no route matches the path
// and the method, match returns the methods that the path allows; for an unknown path, match returns no
// methods. The result `open` is true if requests to the path need no credentials.
func (a *API) match(r *http.Request) (_ *Route, allow []string, open bool) {
	path := strings.TrimPrefix(r.URL.Path, a.Prefix)
	if path == "" {
		path = "/"
	}
	segments := strings.Split(path, "/")
	for i := range a.Routes {
		route := &a.Routes[i]
		if !matchPath(route.Path, segments, nil) {
			continue
		}
		if route.Method == r.Method {
			matchPath(route.Path, segments, r.SetPathValue)
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

// matchPath compares the segments of a path with a route's pattern. If the function `set` is not nil,
// matchPath calls `set` with the name and the value of each segment in braces. The API tries its routes in
// the order of its table, so in the table a literal path must stand before a pattern that also matches this
// path.
func matchPath(pattern string, segments []string, set func(name, value string)) bool {
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
		if raw, err = encode(body); err != nil {
			slog.Error("Encoding the response failed", "error", err)
			status, raw = http.StatusInternalServerError, []byte(`{}`)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// encode encodes a body as JSON, without escaping `<`, `>` and `&`, as in the answers of OpenStack's
// services.
func encode(body any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// WriteJSON writes an HTTP status and a JSON body. The error writers of the APIs (the field API.Fail) call
// WriteJSON.
func WriteJSON(w http.ResponseWriter, status int, body any) { write(w, status, body) }

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// UUID parses a UUID in the canonical form. For any other text, the result `ok` is false.
func UUID(s string) (id uuid.UUID, ok bool) {
	if !canonicalUUID.MatchString(s) {
		return uuid.Nil, false
	}
	return uuid.MustParse(s), true
}
