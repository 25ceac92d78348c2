package osapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/osapi"
)

const page = "https://horizon.example.com"

// sendCORS sends a request and returns the status and the CORS headers of the response. sendCORS returns the
// names of the CORS headers without the prefix Access-Control-.
func sendCORS(t *testing.T, c osapi.CORS, method string, headers map[string]string) (int, map[string]string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/placement/traits", nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	c.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "openstack-api-version")
		w.WriteHeader(http.StatusTeapot)
	})).ServeHTTP(w, r)
	got := map[string]string{"Vary": strings.Join(w.Header().Values("Vary"), ", ")}
	for name := range w.Header() {
		if short, ok := strings.CutPrefix(name, "Access-Control-"); ok {
			got[short] = w.Header().Get(name)
		}
	}
	return w.Code, got
}

func TestCORS_OnlyAllowedOrigins(t *testing.T) {
	t.Parallel()
	c := osapi.CORS{
		Origins:     []string{page, "http://localhost:3000"},
		Credentials: true,
		Expose:      []string{"openstack-api-version", "Location"},
		MaxAge:      time.Hour,
		Methods:     []string{"GET", "PUT"},
		Headers:     []string{"X-Auth-Token", "openstack-api-version"},
	}
	anyOrigin := c
	anyOrigin.Origins = []string{"*", page}
	noHeaders := map[string]string{"Vary": ""}
	plain := map[string]string{"Vary": "openstack-api-version"}
	allowed := map[string]string{
		"Vary":              "Origin",
		"Allow-Origin":      page,
		"Allow-Credentials": "true",
		"Max-Age":           "3600",
		"Allow-Methods":     "PUT",
	}
	preflight := map[string]string{"Origin": page, "Access-Control-Request-Method": "PUT"}
	with := func(m map[string]string, name, value string) map[string]string {
		more := map[string]string{name: value}
		for k, v := range m {
			if k != name {
				more[k] = v
			}
		}
		return more
	}

	for name, tc := range map[string]struct {
		cors    osapi.CORS
		method  string
		headers map[string]string
		status  int
		want    map[string]string
	}{
		"not configured":          {osapi.CORS{}, "GET", preflight, 418, plain},
		"not configured, OPTIONS": {osapi.CORS{}, "OPTIONS", preflight, 418, plain},
		"no origin":               {c, "GET", nil, 418, plain},
		"unknown origin":          {c, "GET", map[string]string{"Origin": page + ".evil.org"}, 418, plain},
		"known origin": {c, "GET", map[string]string{"Origin": page}, 418, map[string]string{
			"Vary":              "Origin, openstack-api-version",
			"Allow-Origin":      page,
			"Allow-Credentials": "true",
			"Expose-Headers":    "openstack-api-version,Location",
		}},
		"any origin": {anyOrigin, "GET", map[string]string{"Origin": "null"}, 418, map[string]string{"Vary": "Origin, openstack-api-version",
			"Allow-Origin": "*", "Expose-Headers": "openstack-api-version,Location"}},
		"preflight":                       {c, "OPTIONS", preflight, 200, allowed},
		"preflight of any origin":         {anyOrigin, "OPTIONS", preflight, 200, allowed},
		"preflight with headers":          {c, "OPTIONS", with(preflight, "Access-Control-Request-Headers", "X-AUTH-TOKEN, OpenStack-API-Version,content-type"), 200, with(allowed, "Allow-Headers", "X-AUTH-TOKEN,OpenStack-API-Version,content-type")},
		"preflight with odd header":       {c, "OPTIONS", with(preflight, "Access-Control-Request-Headers", "X-Auth-Token, X-Odd"), 200, noHeaders},
		"preflight with repeated headers": {c, "OPTIONS", with(preflight, "Access-Control-Request-Headers", strings.Repeat("Accept,", 11)), 200, noHeaders},
		"preflight with odd method":       {c, "OPTIONS", with(preflight, "Access-Control-Request-Method", "BREW"), 200, noHeaders},
		"preflight without method":        {c, "OPTIONS", map[string]string{"Origin": page}, 200, noHeaders},
		"preflight of unknown origin":     {c, "OPTIONS", with(preflight, "Origin", "https://evil.org"), 200, noHeaders},
		"OPTIONS without origin":          {c, "OPTIONS", nil, 200, noHeaders},
	} {
		t.Run(name, func(t *testing.T) {
			status, got := sendCORS(t, tc.cors, tc.method, tc.headers)
			if d := cmp.Diff(tc.want, got); d != "" || status != tc.status {
				t.Errorf("case %s: got status %d; CORS headers (-want +got):\n%s", name, status, d)
			}
		})
	}
}
