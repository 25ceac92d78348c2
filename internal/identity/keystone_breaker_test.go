package identity_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

// openBreaker makes Keystone fail until the circuit breaker is open.
func openBreaker(t *testing.T, s *keystonetest.Server, k *identity.Keystone, status int) {
	t.Helper()
	// the service user is logged in
	expect(t, k, s.Issue(keystonetest.Token{User: "first", Project: "p"}), nil)
	s.Fail(status)
	for i := range identity.FailuresToOpen {
		expect(t, k, fmt.Sprintf("failing-%d", i), identity.ErrUnavailable)
	}
}

func TestBreaker_OpenSendsNothingToKeystone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 502, 503, 504} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s, k := start(t)
			k.SetProbeInterval(time.Hour)
			cached := s.Issue(keystonetest.Token{User: "cached", Project: "p"})
			expect(t, k, cached, nil)
			openBreaker(t, s, k, status)

			expect(t, k, "later", identity.ErrUnavailable)

			if n := s.Validations("later"); n != 0 || !k.BreakerOpen() {
				t.Errorf(
					"authenticate after %d failures: got %d requests to Keystone and the breaker open: %v, want none and true",
					identity.FailuresToOpen, n, k.BreakerOpen(),
				)
			}
			expect(t, k, cached, nil) // a cached token needs no Keystone
		})
	}
}

func TestBreaker_TimeoutsOpenIt(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetProbeInterval(time.Hour)
	expect(t, k, s.Issue(keystonetest.Token{User: "first", Project: "p"}), nil)
	k.SetTimeout(time.Millisecond)
	_, release := s.Hold()
	defer release()

	for i := range identity.FailuresToOpen + 1 {
		expect(t, k, fmt.Sprintf("slow-%d", i), identity.ErrUnavailable)
	}

	if !k.BreakerOpen() {
		t.Errorf("after %d requests without an answer: the breaker is closed, want it open",
			identity.FailuresToOpen)
	}
}

func TestBreaker_FirstAnswerClosesIt(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetProbeInterval(time.Nanosecond)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	openBreaker(t, s, k, 503)
	s.Fail(0)

	expect(t, k, good, nil)
	expect(t, k, "nonsense", identity.ErrUnauthenticated)

	if k.BreakerOpen() {
		t.Error("after an answer of Keystone: the breaker is open, want it closed")
	}
}

// TestBreaker_OneTokenDoesNotOpenIt sends tokens for which Keystone itself answers. A caller must not be able
// to shut out the others.
func TestBreaker_OneTokenDoesNotOpenIt(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s, k := start(t)
			k.SetProbeInterval(time.Hour)
			good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
			s.Fail(status)
			for i := range 3 * identity.FailuresToOpen {
				if _, err := k.Authenticate(request(t.Context(), fmt.Sprintf("bad-%d", i))); err == nil {
					t.Error("authenticate with an unknown token: got no error, want one")
				}
			}
			s.Fail(0)
			expect(t, k, good, nil)
		})
	}
}

func TestCheck_SaysWhetherKeystoneValidatesTokens(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	check := func(want string) {
		t.Helper()
		err := k.Check(t.Context())
		if want == "" && err != nil ||
			want != "" && (!errors.Is(err, identity.ErrUnavailable) || !strings.Contains(err.Error(), want)) {
			t.Errorf("check of Keystone: got error %v, want %q", err, want)
		}
	}
	check("")
	s.Fail(500)
	check("") // the last result is still valid
	s.Advance(6 * time.Second)
	check("Keystone answered 500")
	s.Fail(0)
	s.Advance(6 * time.Second)
	check("")
	s.RevokeUser("berth")
	s.Advance(6 * time.Second)
	check("")
	s.User("berth", "changed", "service", "service")
	s.RevokeUser("berth")
	s.Advance(6 * time.Second)
	check("check OS_USERNAME")
}
