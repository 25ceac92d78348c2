// Package safeurl builds and checks the paths of outgoing requests, so that a value from outside never leads
// a request, which carries berth's own token, to another path than the one that the client means.
package safeurl

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ErrPath means that the path of a request could leave its collection. A request with such a path is never
// sent.
var ErrPath = errors.New("the path of the request contains a dot segment")

// Segment returns the value as one segment of a path: every character that could end the segment is escaped.
// Segment cannot escape the values "." and "..", because servers decode the segment first; CheckPath refuses
// them.
func Segment(value string) string { return url.PathEscape(value) }

// CheckPath returns ErrPath if a server could read a segment "." or ".." in the path of the URL, also after
// decoding it once.
func CheckPath(u *url.URL) error {
	for segment := range strings.FieldsFuncSeq(u.Path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if segment == "." || segment == ".." {
			return fmt.Errorf("%w: %q", ErrPath, u.EscapedPath())
		}
	}
	return nil
}

// Transport returns a transport that sends a request with the given transport only if CheckPath accepts the
// URL of the request.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := CheckPath(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the given transport, for
// http.Client.CloseIdleConnections.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
