package server_test

import (
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/identity/keystonetest"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// TestBadTokens_DelayOnlyTheirAddress sends random tokens from one address, until berth refuses them without
// Keystone.
func TestBadTokens_DelayOnlyTheirAddress(t *testing.T) {
	t.Parallel()
	keystone, settings := keystoneSettings(t)
	a := servertest.StartApp(t, config.API, append(settings, "BERTH_TRUSTED_PROXIES=127.0.0.1")...)
	issue := func() string {
		return keystone.Issue(keystonetest.Token{User: "bob", Project: "demo", Roles: []string{"member"}})
	}
	cached := issue()
	if status, body, _ := getFrom(t, a, "203.0.113.1", "/networking/v2.0/ports", cached); status != http.StatusOK {
		t.Fatalf("request with a valid token: got %d %s, want 200", status, body)
	}
	for path, format := range map[string]string{
		"/networking/v2.0/ports":            `{"NeutronError":{`,
		"/placement/usages?project_id=demo": `{"errors":[{`,
		"/reservation/v1/leases":            `"error_message":`,
		"/operator/v1/notes":                `"code":429`,
		"/journal/v1/entries":               `"code":429`,
		"/agent/v1/reports":                 `"code":429`,
	} {
		var body, after string
		servertest.Await(t, "berth refuses invalid tokens of the address for "+path, func() bool {
			for range 100 {
				var status int
				if status, body, after = getFrom(t, a, "203.0.113.1", path, rand.Text()); status == http.StatusTooManyRequests {
					return true
				}
			}
			return false
		})
		if !strings.Contains(body, format) || after == "" {
			t.Errorf(
				"GET %s with one invalid token too many: got Retry-After %q and the body %s, want Retry-After and %s",
				path, after, body, format,
			)
		}
	}
	for name, c := range map[string]struct{ address, token string }{"cached": {"203.0.113.1", cached}, "other address": {"203.0.113.2", issue()}} {
		if status, body, _ := getFrom(t, a, c.address, "/networking/v2.0/ports", c.token); status != http.StatusOK {
			t.Errorf("request with a valid token (%s): got %d %s, want 200", name, status, body)
		}
	}
	_, metrics, _ := getAs(t, a, "/metrics", "")
	if !strings.Contains(metrics, "\nberth_keystone_refused_total ") ||
		strings.Contains(metrics, "\nberth_keystone_refused_total 0\n") {
		t.Error("metrics after refused tokens: want berth_keystone_refused_total above 0")
	}
}

// getFrom sends a GET request that a proxy forwards for a client with the address, and returns the status,
// the body and the header Retry-After of the answer.
func getFrom(t *testing.T, a *server.App, address, path, token string) (status int, body, after string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("X-Forwarded-For", address)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw), answer.Header.Get("Retry-After")
}
