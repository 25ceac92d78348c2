package identity_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"berth/internal/identity"
)

// recordedRequests is a transport that records the paths of requests to Keystone.
type recordedRequests struct {
	next http.RoundTripper
	uris []string
}

// RoundTrip implements http.RoundTripper.
func (t *recordedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	t.uris = append(t.uris, r.URL.RequestURI())
	return t.next.RoundTrip(r)
}

func TestRequests_HostileTokensDoNotChangeThePath(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	sent := &recordedRequests{}
	as := service(s)
	as.Wrap = func(next http.RoundTripper) http.RoundTripper {
		sent.next = next
		return sent
	}
	k := connect(t, s, as)
	for _, token := range []string{"..", "../users", "a?b=c", "a#b", "%2e%2e", "a\r\nX-Auth-Token: b", "a b"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/placement/", nil)
		r.Header["X-Auth-Token"] = []string{token}
		if _, err := k.Authenticate(r); err == nil {
			t.Errorf("authenticate with the token %q: got no error, want %v",
				token, identity.ErrUnauthenticated)
		}
	}
	if len(sent.uris) < 6 {
		t.Errorf("requests to Keystone: got %d, want a login and at least five validations", len(sent.uris))
	}
	for _, uri := range sent.uris {
		if uri != "/v3/auth/tokens" && uri != "/identity/v3/auth/tokens" {
			t.Errorf("request to Keystone: got %s, want the path of tokens", uri)
		}
	}
}
