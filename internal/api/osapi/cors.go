package osapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS lets pages of other origins call the APIs from a browser, in the manner of oslo.middleware. Without origins
// it does nothing, and OPTIONS is a method like any other.
type CORS struct {
	Origins     []string // scheme://host[:port] each, or "*" for any
	Credentials bool     // pages may send credentials; not for those that only "*" lets in
	Expose      []string // headers of answers that pages may read
	MaxAge      time.Duration
	Methods     []string // that pages may use
	Headers     []string // that pages may send, beside the simple ones
}

// simpleHeaders are those that a page may always send.
var simpleHeaders = []string{"Accept", "Accept-Language", "Cache-Control", "Content-Language", "Content-Type", "Expires", "Last-Modified", "Pragma"}

// Wrap adds what pages need to the answers of h, and answers OPTIONS itself: browsers ask without credentials.
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
			c.admit(w.Header(), origin)
			if len(c.Expose) > 0 {
				w.Header().Set("Access-Control-Expose-Headers", strings.Join(c.Expose, ","))
			}
		}
		h.ServeHTTP(w, r)
	})
}

// origin is how the request's origin is named in the answer, empty if it is none that may call.
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

func (c CORS) admit(header http.Header, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	if c.Credentials && origin != "*" {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
}

// preflight tells a browser whether a page may send what it announces. A refusal is silence.
func (c CORS) preflight(header http.Header, r *http.Request, origin string) {
	method, wanted := r.Header.Get("Access-Control-Request-Method"), requested(r)
	if origin == "" || !slices.Contains(c.Methods, method) {
		return
	}
	for _, name := range wanted {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		if !slices.ContainsFunc(c.Headers, same) && !slices.ContainsFunc(simpleHeaders, same) {
			return
		}
	}
	c.admit(header, origin)
	header.Set("Access-Control-Allow-Methods", method)
	if c.MaxAge > 0 {
		header.Set("Access-Control-Max-Age", strconv.Itoa(int(c.MaxAge.Seconds())))
	}
	if len(wanted) > 0 {
		header.Set("Access-Control-Allow-Headers", strings.Join(wanted, ","))
	}
}

// requested are the headers that a page wants to send.
func requested(r *http.Request) (names []string) {
	for name := range strings.SplitSeq(strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
