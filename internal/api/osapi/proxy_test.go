package osapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

func TestBaseURL_FollowsTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	api := &osapi.API{
		Prefix:   "/x",
		Identity: identity.Noauth{},
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("192.0.2.0/24"),
			netip.MustParsePrefix("2001:db8::1/128"),
		},
		Routes: []osapi.Route{
			{
				Method: http.MethodGet,
				Path:   "/",
				Open:   true,
				Handle: func(r *http.Request) (int, any, error) {
					return http.StatusOK, []byte(osapi.BaseURL(r)), nil
				},
			},
		},
	}
	for _, c := range []struct {
		peer, want string
		headers    map[string]string
	}{
		{"198.51.100.1:9", "http://berth:8778", map[string]string{"Proto": "https", "Host": "cloud.example.org", "Prefix": "/p"}},
		{"@", "http://berth:8778", map[string]string{"Proto": "https"}},
		{"192.0.2.7:9", "http://berth:8778", nil},
		{"192.0.2.7:9", "https://berth:8778", map[string]string{"Proto": "https"}},
		{"192.0.2.7:9", "https://cloud.example.org:1/p/q", map[string]string{"Proto": "https", "Host": "cloud.example.org:1", "Prefix": "/p/q/"}},
		{"[::ffff:192.0.2.7]:9", "https://berth:8778", map[string]string{"Proto": "https"}},
		{"[2001:db8::1]:9", "https://[2001:db8::2]", map[string]string{"Proto": "https", "Host": "[2001:db8::2]"}},
		{"192.0.2.7:9", "https://near", map[string]string{"Proto": "http, https", "Host": "forged,near"}},
		{"192.0.2.7:9", "http://berth:8778", map[string]string{"Proto": "javascript", "Host": "a/b", "Prefix": "p"}},
		{"192.0.2.7:9", "http://berth:8778", map[string]string{"Host": strings.Repeat("a", 262), "Prefix": "/" + strings.Repeat("%", 255)}},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://berth:8778/x", nil)
		r.RemoteAddr = c.peer
		for name, value := range c.headers {
			r.Header.Set("X-Forwarded-"+name, value)
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Body.String() != c.want {
			t.Errorf("base URL of a request from %s with the headers X-Forwarded-%v: got %s, want %s",
				c.peer, c.headers, w.Body, c.want)
		}
	}
}

func TestHost_LongOrMalformedOneIsRefused(t *testing.T) {
	t.Parallel()
	api := &osapi.API{
		Prefix:   "/x",
		Identity: identity.Noauth{},
		Fail:     osapi.WriteError,
		Routes: []osapi.Route{
			{
				Method: http.MethodGet,
				Path:   "/",
				Open:   true,
				Handle: func(r *http.Request) (int, any, error) { return http.StatusOK, osapi.BaseURL(r), nil },
			},
		},
	}
	for host, want := range map[string]int{
		"":                                  200,
		"berth":                             200,
		"berth_1.example.org:8778":          200,
		"192.0.2.1:1":                       200,
		"[2001:db8::1]:8778":                200,
		strings.Repeat("a", 255) + ":65535": 200,
		strings.Repeat("a", 262):            400,
		strings.Repeat("%", 64000):          400,
		"%":                                 400,
		"a/b":                               400,
		"user@a":                            400,
		"a?b":                               400,
		"a b":                               400,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if api.ServeHTTP(w, r); w.Code != want || w.Body.Len() > 1024 {
			t.Errorf("request with the Host %.30q of %d bytes: got %d with %d bytes, want %d with a short body",
				host, len(host), w.Code, w.Body.Len(), want)
		}
	}
}
