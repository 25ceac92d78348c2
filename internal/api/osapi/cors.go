package osapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS lets web pages of other origins call the APIs, as oslo.middleware's CORS filter does. If the list of
// allowed origins is empty, CORS adds no headers and does not answer OPTIONS requests itself.
type CORS struct {
	Origins     []string // allowed origins, scheme://host[:port] each; "*" allows any
	Credentials bool     // pages may send credentials; has no effect on origins that only "*" allows
	Expose      []string // response headers that pages may read
	MaxAge      time.Duration
	Methods     []string // methods that pages may use
	Headers     []string // request headers that pages may send in addition to simpleHeaders
}

// simpleHeaders are request headers that pages may always send.
var simpleHeaders = []string{
	"Accept",
	"Accept-Language",
	"Cache-Control",
	"Content-Language",
	"Content-Type",
	"Expires",
	"Last-Modified",
	"Pragma",
}

// Wrap adds the CORS headers to the responses of h. Wrap answers OPTIONS requests without calling h, because
// browsers send preflight requests without credentials and h would refuse them.
func (c CORS) Wrap(h http.Handler) http.Handler {
	if len(c.Origins) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := c.origin(r)
		if r.Method == http.MethodOptions {
			c.preflight(w.Header(), r, origin)
			w.WriteHeader(http.StatusOK)
			return
		}
		if origin != "" {
			c.allow(w.Header(), origin)
			if len(c.Expose) > 0 {
				w.Header().Set("Access-Control-Expose-Headers", strings.Join(c.Expose, ","))
			}
		}
		h.ServeHTTP(w, r)
	})
}

// origin returns the value of the header Access-Control-Allow-Origin. If the origin of the request is not
// allowed, origin returns the empty string.
func (c CORS) origin(r *http.Request) string {
	switch origin := r.Header.Get("Origin"); {
	case origin == "":
		return ""
	case slices.Contains(c.Origins, origin):
		return origin
	case slices.Contains(c.Origins, "*"):
		return "*"
	default:
		return ""
	}
}

// allow sets the CORS headers that every allowed response has.
func (c CORS) allow(header http.Header, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	if c.Credentials && origin != "*" {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
}

// preflight answers a preflight request, by which a browser asks whether a page may send a request. If the
// page may not send the request, the answer to the preflight request has no CORS headers.
func (c CORS) preflight(header http.Header, r *http.Request, origin string) {
	method, wanted := r.Header.Get("Access-Control-Request-Method"), requestedHeaders(r)
	if origin == "" || !slices.Contains(c.Methods, method) ||
		len(wanted) > len(c.Headers)+len(simpleHeaders) { // the answer repeats them; no browser names one twice
		return
	}
	for _, name := range wanted {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		if !slices.ContainsFunc(c.Headers, same) && !slices.ContainsFunc(simpleHeaders, same) {
			return
		}
	}
	c.allow(header, origin)
	header.Set("Access-Control-Allow-Methods", method)
	if c.MaxAge > 0 {
		header.Set("Access-Control-Max-Age", strconv.Itoa(int(c.MaxAge.Seconds())))
	}
	if len(wanted) > 0 {
		header.Set("Access-Control-Allow-Headers", strings.Join(wanted, ","))
	}
}

// requestedHeaders returns the names of the headers that a page wants to send.
func requestedHeaders(r *http.Request) (names []string) {
	for name := range strings.SplitSeq(strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
