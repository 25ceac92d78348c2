package server_test

import (
	"net/http"
	"slices"
	"testing"

	"berth/internal/server/servertest"
)

func TestCORS_ConfiguredOriginsOnEveryAPI(t *testing.T) {
	t.Parallel()
	const page = "https://horizon.example.com"
	a := servertest.StartApp(t, "api", "BERTH_CORS_ALLOWED_ORIGIN="+page)
	ask := func(method, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Address()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", page)
		r.Header.Set("Access-Control-Request-Method", "PUT")
		r.Header.Set("Access-Control-Request-Headers", "openstack-api-version,x-auth-token")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		return w
	}

	for _, api := range a.APIs(nil) {
		if api.Prefix == "/console" { // TestConsole_HasNoCORS checks that no page of another site may read it
			continue
		}
		if w := ask(http.MethodOptions, api.Prefix+"/anything"); w.StatusCode != 200 ||
			w.Header.Get("Access-Control-Allow-Methods") != "PUT" ||
			w.Header.Get("Access-Control-Allow-Origin") != page {
			t.Errorf("preflight request to %s: got %s with headers %v, want 200 with the CORS headers",
				api.Prefix, w.Status, w.Header)
		}
		if w := ask(http.MethodGet, api.Prefix+"/anything"); w.StatusCode != 401 ||
			w.Header.Get("Access-Control-Allow-Origin") != page ||
			!slices.Contains(w.Header["Vary"], "Origin") {
			t.Errorf("GET %s without a token: got %s with headers %v, want 401 with the CORS headers",
				api.Prefix, w.Status, w.Header)
		}
	}
	if w := ask(http.MethodGet, "/placement/"); w.StatusCode != 200 ||
		!slices.Equal(w.Header["Vary"], []string{"Origin", "openstack-api-version"}) {
		t.Errorf(
			"GET /placement/: got %s with headers %v, want 200 with Vary: Origin, openstack-api-version",
			w.Status,
			w.Header,
		)
	}
	if w := ask(http.MethodGet, "/metrics"); w.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("GET /metrics: got a header Access-Control-Allow-Origin, want none")
	}
}
