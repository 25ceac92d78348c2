package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// A user logs in to the console with the password of Keystone. After refused passwords, the address of the
// client has to wait, and other addresses do not.
func TestConsole_LogsInAtKeystone(t *testing.T) {
	t.Parallel()
	keystone, settings := keystoneSettings(t)
	keystone.User("ann", "s3cret", "demo", "member", "reader")
	a := servertest.StartApp(t, config.API, append(settings, "BERTH_TRUSTED_PROXIES=127.0.0.1")...)
	answer := logInToConsole(t, a, "203.0.113.1", "s3cret")
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("log in: got %d with %d cookies, want 303 and one cookie", answer.StatusCode, len(answer.Cookies()))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"/console/ports", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(answer.Cookies()[0])
	page, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = page.Body.Close()
	if page.StatusCode != http.StatusOK {
		t.Errorf("a page with the cookie: got %d, want 200", page.StatusCode)
	}
	servertest.Await(t, "berth refuses logins of the address", func() bool {
		answer := logInToConsole(t, a, "203.0.113.1", "guess")
		return answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != ""
	})
	if answer := logInToConsole(t, a, "203.0.113.2", "s3cret"); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("log in from another address: got %d, want 303", answer.StatusCode)
	}
}

// logInToConsole sends the login form that a proxy forwards for a client with the address.
func logInToConsole(t *testing.T, a *server.App, address, password string) *http.Response {
	t.Helper()
	form := url.Values{
		"user":           {"ann"},
		"user_domain":    {"Default"},
		"password":       {password},
		"project":        {"demo"},
		"project_domain": {"Default"},
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL()+"/console/login",
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", address)
	answer, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer
}
