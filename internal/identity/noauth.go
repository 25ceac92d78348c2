package identity

import (
	"fmt"
	"net/http"
	"strings"
)

// Noauth believes what the token says, as Placement's noauth2 does: `user[:project]`, and the user `admin`
// has the role admin. X-Project-Id and X-Roles, if sent, override the project and the roles. The token
// `notused`, which keystoneauth's "none" plugin sends, means admin; its "http_basic" plugin sends a user and a password, which is taken for
// the project. Only for loopback listeners.
type Noauth struct {
	// Bare is noauth2 to the letter: a token alone means no role but admin's. Otherwise who names a project is a
	// member of it, as the other APIs need.
	Bare bool
}

// Authenticate never fails for another reason than a missing token.
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
