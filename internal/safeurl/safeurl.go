// Package safeurl builds and checks the paths of outgoing requests, so that a value from outside never leads
// a request, which carries berth's own token, to another path than the one that the client means. It also
// limits what a client reads of an answer.
package safeurl

import (
	"errors"
	"fmt"
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
