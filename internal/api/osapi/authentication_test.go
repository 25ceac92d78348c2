package osapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

func TestAuthentication_401HasKeystoneChallenge(t *testing.T) {
	t.Parallel()
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	k, err := identity.NewKeystone(identity.Service{
		AuthURL:       keystone.URL,
		Username:      "berth",
		Password:      "secret",
		Project:       "service",
		UserDomain:    "Default",
		ProjectDomain: "Default",
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id     identity.Authenticator
		token  string
		status int
		ask    string
	}{
		"keystone, no token":  {k, "", 401, k.Challenge()},
		"keystone, bad token": {k, "nonsense", 401, k.Challenge()},
		"keystone, known":     {k, keystone.Issue(keystonetest.Token{User: "u", Project: "p"}), 204, ""},
		"noauth, no token":    {identity.Noauth{}, "", 401, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := &osapi.API{
				Prefix:   "/x",
				Identity: c.id,
				Routes: []osapi.Route{
					{
						Method: "GET",
						Path:   "/",
						Handle: func(*http.Request) (int, any, error) { return 204, nil, nil },
					},
				},
				Fail: func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) { osapi.WriteJSON(w, e.Status, nil) },
			}
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil)
			if c.token != "" {
				r.Header.Set("X-Auth-Token", c.token)
			}
			w := httptest.NewRecorder()

			api.ServeHTTP(w, r)

			if got := w.Header().Get("WWW-Authenticate"); w.Code != c.status || got != c.ask {
				t.Errorf("case %s: got %d with the challenge %q, want %d with %q",
					name, w.Code, got, c.status, c.ask)
			}
		})
	}
}
