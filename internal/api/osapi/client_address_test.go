package osapi

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestClientAddress_IsTheForwardedOneBehindTrustedProxies(t *testing.T) {
	t.Parallel()
	api := &API{
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("192.0.2.0/24"),
			netip.MustParsePrefix("2001:db8:1::1/128"),
		},
	}
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string // empty: not known
	}{
		{"198.51.100.1:9", nil, "198.51.100.1"},
		{"198.51.100.1:9", []string{"203.0.113.7"}, "198.51.100.1"}, // not a trusted proxy
		{"[::ffff:198.51.100.1]:9", nil, "198.51.100.1"},
		{"[2001:db8:9::1:2:3%eth0]:9", nil, "2001:db8:9::"},
		{"@", nil, ""},
		{"192.0.2.1:9", nil, ""},
		{"192.0.2.1:9", []string{"203.0.113.7"}, "203.0.113.7"},
		// the client has sent the first address
		{"192.0.2.1:9", []string{"10.0.0.1, 203.0.113.7"}, "203.0.113.7"},
		{"192.0.2.1:9", []string{"10.0.0.1", "203.0.113.7,192.0.2.2"}, "203.0.113.7"},
		{"192.0.2.1:9", []string{"203.0.113.7:4711"}, "203.0.113.7"},
		{"192.0.2.1:9", []string{"[2001:db8:9::5]:4711"}, "2001:db8:9::"},
		{"192.0.2.1:9", []string{"[2001:db8:9::5]"}, "2001:db8:9::"},
		{"[2001:db8:1::1]:9", []string{"2001:db8:9:0:ffff::5"}, "2001:db8:9::"},
		{"192.0.2.1:9", []string{"192.0.2.2"}, ""},
		{"192.0.2.1:9", []string{"unknown"}, ""},
		{"192.0.2.1:9", []string{"203.0.113.7, "}, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		want := netip.Addr{}
		if c.want != "" {
			want = netip.MustParseAddr(c.want)
		}
		if got := ClientOf(api.clientIP(r)); got != want {
			t.Errorf("client of a request from %s with X-Forwarded-For %q: got %s, want %s",
				c.peer, c.forwarded, got, want)
		}
	}
}
