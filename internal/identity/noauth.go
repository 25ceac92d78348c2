package identity

import (
	"fmt"
	"net/http"
	"strings"
)

// Noauth accepts every token, as Placement's noauth2 does: `user[:project]`, where the user `admin` has the role admin. The headers
// X-Project-Id and X-Roles replace the project and the roles. The token `notused` of keystoneauth's "none" plugin means admin. The
// "http_basic" plugin sends a user and a password; the password is used as the project. Only listeners on loopback may use
// Noauth.
type Noauth struct {
	// Bare selects Placement's behaviour exactly: only admin gets a role. Otherwise a caller with a project gets the role member, which the
	// other APIs need.
	Bare bool
}

// Authenticate returns the caller that the token names. It fails only if the request has no token.
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
