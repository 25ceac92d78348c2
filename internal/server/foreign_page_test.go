package server_test

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server/servertest"
)

// sendAsBrowser sends a request with the headers that a browser sends for a page, and returns the status: 415
// for a write that berth does not refuse as foreign, because the body is plain text.
func sendAsBrowser(t *testing.T, method, url, host string, headers map[string]string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"unknown":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Host = host; host == "" {
		r.Host = r.URL.Host
	}
	r.SetBasicAuth("admin", "x")
	r.Header.Set("Content-Type", "text/plain")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Body.Close()
	return w.StatusCode
}

func TestForeignPages_CannotUseNoauth(t *testing.T) {
	t.Parallel()
	const allowed = "https://horizon.example.com"
	a := servertest.StartApp(t, config.API,
		"BERTH_OPERATOR_LISTEN=127.0.0.1:0", "BERTH_CORS_ALLOWED_ORIGIN="+allowed)
	const pause, list = "/journal/v1/pause", "/journal/v1/entries"
	foreign := map[string]string{"Origin": "https://evil.example.com", "Sec-Fetch-Site": "cross-site"}
	for name, c := range map[string]struct {
		method, url, host string
		headers           map[string]string
		want              int
	}{
		"form of another site":     {"POST", a.URL() + pause, "", foreign, 403},
		"form of an older browser": {"POST", a.URL() + pause, "", map[string]string{"Origin": "null"}, 403},
		"name of another site":     {"GET", a.URL() + list, "evil.example.com", nil, 403},
		"name with a port":         {"POST", a.URL() + pause, "evil.example.com:80", nil, 403},
		"name like localhost":      {"GET", a.URL() + list, "localhost.example.com", nil, 403},
		"address of operators":     {"GET", a.OperatorURL() + "/metrics", "evil.example.com", nil, 403},
		"address of all machines":  {"GET", a.URL() + list, "0.0.0.0:80", nil, 403},
		"allowed site":             {"POST", a.URL() + pause, "", map[string]string{"Origin": allowed}, 415},
		"client without a page":    {"POST", a.URL() + pause, "", nil, 415},
		"localhost":                {"GET", a.URL() + list, "localhost", nil, 200},
		"IPv6":                     {"GET", a.URL() + list, "[::1]", nil, 200},
		"read by another site":     {"GET", a.URL() + list, "", foreign, 200}, // CORS hides the answer
	} {
		if got := sendAsBrowser(t, c.method, c.url, c.host, c.headers); got != c.want {
			t.Errorf("%s: %s %s with the Host %q: got %d, want %d", name, c.method, c.url, c.host, got, c.want)
		}
	}
}

func TestForeignPages_CORSForAllAllowsTheirWrites(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API, "BERTH_CORS_ALLOWED_ORIGIN=*")
	foreign := map[string]string{"Origin": "https://page.example.com", "Sec-Fetch-Site": "cross-site"}
	if got := sendAsBrowser(t, "POST", a.URL()+"/journal/v1/pause", "", foreign); got != 415 {
		t.Errorf("write from any page: got %d, want 415 because of its body", got)
	}
}
