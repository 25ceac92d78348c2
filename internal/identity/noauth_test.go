package identity_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
)

func TestNoauth_BasicAuthGivesUserAndProject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id             identity.Noauth
		token          string
		user, password string
		want           identity.Caller
	}{
		"administrator": {user: "admin", password: "ops", want: identity.Caller{User: "admin", Project: "ops", Roles: []string{"admin", "member", "reader"}}},
		"member":        {user: "ann", password: "demo", want: identity.Caller{User: "ann", Project: "demo", Roles: []string{"member", "reader"}}},
		"token first": {
			token:    "bob:test",
			user:     "admin",
			password: "ops",
			want:     identity.Caller{User: "bob", Project: "test", Roles: []string{"member", "reader"}},
		},
		"noauth2": {id: identity.Noauth{Bare: true}, user: "admin", password: "ops"},
		"nobody":  {user: "", password: "demo"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.SetBasicAuth(c.user, c.password)
			if c.token != "" {
				r.Header.Set("X-Auth-Token", c.token)
			}
			got, err := c.id.Authenticate(r)
			if d := cmp.Diff(c.want, got); d != "" || (err != nil) != (c.want.User == "") ||
				err != nil && !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf("basic authentication, %s: got error %v; caller (-want +got):\n%s", name, err, d)
			}
		})
	}
}
