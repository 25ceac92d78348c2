package server_test

import (
	"net/http"
	"slices"
	"testing"

	"berth/internal/config"
	"berth/internal/identity/keystonetest"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// keystoneSettings returns a stub of Keystone and the settings of a process that uses the stub.
func keystoneSettings(t *testing.T) (*keystonetest.Server, []string) {
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	return keystone, []string{
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL=" + keystone.URL,
		"OS_USERNAME=berth",
		"OS_PASSWORD=secret",
		"OS_PROJECT_NAME=service",
	}
}

// TestReadiness_NamesKeystoneThatDoesNotAnswer checks that a process stays ready for the grace after the last
// answer of Keystone.
func TestReadiness_NamesKeystoneThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	keystone, settings := keystoneSettings(t)
	patient := servertest.StartApp(t, config.API, settings...)
	lone := servertest.StartApp(t, config.Relay, settings...)
	impatient := servertest.StartApp(t, config.API, append(settings, "BERTH_KEYSTONE_GRACE=1ms")...)
	for _, a := range []*server.App{patient, impatient} {
		awaitReadiness(t, a, http.StatusOK, "keystone", "ok")
	}
	if _, body := servertest.ReadReadiness(t, lone); body.Checks["keystone"] != "" {
		t.Errorf("/readyz of a relay, which needs no Keystone: got %+v, want no check keystone", body)
	}

	keystone.Fail(http.StatusServiceUnavailable)

	body := awaitReadiness(t, patient, http.StatusOK, "keystone",
		"Keystone answered 503; the process stays ready for another")
	if !slices.Contains(body.Informational, "keystone") {
		t.Errorf("/readyz within the grace: got %+v, want keystone as a failed informational check", body)
	}
	body = awaitReadiness(t, impatient, http.StatusServiceUnavailable, "keystone", "Keystone answered 503")
	if got := failures(body); !slices.Equal(got, []string{"keystone"}) ||
		slices.Contains(body.Informational, "keystone") {
		t.Errorf("/readyz after the grace: got %+v, want only the check keystone to fail, and to count", body)
	}
	keystone.Fail(0)
	awaitReadiness(t, impatient, http.StatusOK, "keystone", "ok")
}

// TestReadiness_APIProcessNeedsAFirstAnswerOfKeystone also checks that the API answers 503 with Retry-After.
func TestReadiness_APIProcessNeedsAFirstAnswerOfKeystone(t *testing.T) {
	t.Parallel()
	keystone, settings := keystoneSettings(t)
	keystone.Fail(http.StatusServiceUnavailable)
	a := servertest.StartApp(t, config.API, settings...)

	body := awaitReadiness(t, a, http.StatusServiceUnavailable, "keystone", "Keystone answered 503")

	if slices.Contains(body.Informational, "keystone") {
		t.Errorf(
			"/readyz of a process that has never reached Keystone: got %+v, want the check keystone to count",
			body,
		)
	}
	if got := retryAfterOf(t, a.URL()); got != "5" {
		t.Errorf("Retry-After of the answer 503 if Keystone names no time: got %q, want 5", got)
	}
	keystone.FailUntil(http.StatusServiceUnavailable, "42")
	if got := retryAfterOf(t, a.URL()); got != "42" {
		t.Errorf("Retry-After of the answer 503 if Keystone answers Retry-After: 42: got %q, want 42", got)
	}
}

// retryAfterOf sends a request with a token, wants the answer 503, and returns the header Retry-After of the
// answer.
func retryAfterOf(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/networking/v2.0/ports", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "token")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("request without Keystone: got %s, want 503", answer.Status)
	}
	return answer.Header.Get("Retry-After")
}
