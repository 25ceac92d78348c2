package identity_test

import (
	"net/http"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

func TestRetryAfter_IsThatOfKeystone(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"30":          30 * time.Second,
		"date":        90 * time.Second,
		"":            0,
		"0":           0,
		"-1":          0,
		"soon":        0,
		"99999999999": time.Hour,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			s, k := start(t)
			if header == "date" {
				header = s.Now().Add(want).Format(http.TimeFormat)
			}
			s.FailUntil(503, header)
			for _, token := range []string{"a", "b"} { // the service user cannot log in
				if got := retryAfter(t, k, token); got != want {
					t.Errorf(
						"authenticate while Keystone answers 503 with Retry-After %q: got %s, want %s",
						header, got, want,
					)
				}
			}
		})
	}
}

// retryAfter authenticates with a token while Keystone fails, and returns the time after which Keystone wants
// to be asked again.
func retryAfter(t *testing.T, k *identity.Keystone, token string) time.Duration {
	t.Helper()
	_, err := k.Authenticate(request(t.Context(), token))
	if err == nil {
		t.Fatal("authenticate while Keystone fails: got no error")
	}
	return identity.RetryAfter(err)
}

func TestRetryAfter_OpenBreakerPassesOnTheRest(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetProbeInterval(time.Hour)
	expect(t, k, s.Issue(keystonetest.Token{User: "first", Project: "p"}), nil)
	s.FailUntil(429, "60")
	for range identity.FailuresToOpen {
		expect(t, k, "failing", identity.ErrUnavailable)
	}

	s.Advance(20 * time.Second)
	if got := retryAfter(t, k, "refused"); got != 40*time.Second {
		t.Errorf("20 s after Keystone's Retry-After of 60 s, with the breaker open: got %s, want 40s", got)
	}
	s.Advance(40 * time.Second)
	if got := retryAfter(t, k, "refused"); got != 0 {
		t.Errorf("after the time of Keystone's Retry-After, with the breaker open: got %s, want none", got)
	}
}
