package identity

import (
	"fmt"
	"net/http"
	"strings"
)

// Noauth accepts every token, as Placement's noauth2 does. A token has the form `user[:project]`; the user
// `admin` has the role admin. If a request has the header X-Project-Id or X-Roles, Noauth uses the project or
// the roles of the header instead of those of the token. The token `notused`, which keystoneauth's "none"
// plugin sends, means admin. keystoneauth's "http_basic" plugin sends a user and a password; Noauth uses the
// password as the project. Because Noauth accepts every token, it may only be used if the API listens on a
// loopback address.
type Noauth struct {
	// Bare selects Placement's behaviour exactly: only admin gets a role, and "http_basic" is not accepted.
	// If Bare is false, a caller whose token names a project also gets the roles member and reader, which
	// APIs other than Placement need.
	Bare bool
}

// Authenticate returns the caller that the token names. Authenticate returns an error only if the request has
// no token.
func (n Noauth) Authenticate(r *http.Request) (Caller, error) {
	token := r.Header.Get("X-Auth-Token")
	if user, password, ok := r.BasicAuth(); ok && token == "" && !n.Bare && user != "" {
		token = user + ":" + password
	}
	if token == "" {
		return Caller{}, fmt.Errorf("%w: no X-Auth-Token", ErrUnauthenticated)
	}
	if token == "notused" {
		token = "admin"
	}
	user, project, scoped := strings.Cut(token, ":")
	if !scoped {
		project = user
	}
	if p := r.Header.Get("X-Project-Id"); p != "" {
		project = p
	}
	c := Caller{User: user, Project: project, System: r.Header.Get("OpenStack-System-Scope") == "all"}
	switch roles := r.Header.Get("X-Roles"); {
	case roles != "":
		for role := range strings.SplitSeq(roles, ",") {
			c.Roles = append(c.Roles, strings.TrimSpace(role))
		}
	case user == "admin" && n.Bare:
		c.Roles = []string{"admin"}
	case n.Bare:
	case user == "admin":
		c.Roles = []string{"admin", "member", "reader"}
	case scoped:
		c.Roles = []string{"member", "reader"}
	}
	return c, nil
}
