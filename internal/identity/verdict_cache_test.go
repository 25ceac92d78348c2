package identity_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

func TestVerdicts_AreCached(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1", Roles: []string{"member"}})
	first := expect(t, k, good, nil)
	expect(t, k, "bad", identity.ErrUnauthenticated)

	s.Fail(http.StatusServiceUnavailable)
	s.Advance(9 * time.Second)
	expect(t, k, "bad", identity.ErrUnauthenticated)
	s.Advance(time.Second)
	// the verdict expires soon, because a new token may reach Keystone's replicas late
	expect(t, k, "bad", identity.ErrUnavailable)
	s.Advance(4 * time.Minute)

	if d := cmp.Diff(first, expect(t, k, good, nil)); d != "" {
		t.Error(d)
	}
	if n := s.Validations(good); n != 1 {
		t.Errorf("validations of the valid token: got %d, want 1", n)
	}
}

func TestVerdicts_RevokedTokenIsRefusedAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	expect(t, k, token, nil)

	s.Revoke(token)
	s.Advance(5 * time.Minute)

	expect(t, k, token, identity.ErrUnauthenticated)
}

func TestVerdicts_NotCachedBeyondTheTokensExpiry(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1", Expires: s.Now().Add(90 * time.Second)})
	expect(t, k, token, nil)

	s.Advance(89 * time.Second)
	expect(t, k, token, nil)
	s.Advance(time.Second)

	s.Fail(http.StatusServiceUnavailable)
	expect(t, k, token, identity.ErrUnavailable) // the cached verdict has expired
	s.Fail(0)
	expect(t, k, token, identity.ErrUnauthenticated)
}

func TestVerdicts_CacheIsLimited(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetLimit(5)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	expect(t, k, good, nil)

	for i := range 40 {
		expect(t, k, fmt.Sprintf("stranger-%d", i), identity.ErrUnauthenticated)
	}

	if n := k.Remembered(); n != 6 {
		t.Errorf("number of verdicts in both caches: got %d, want 6", n)
	}
	expect(t, k, good, nil)
	if n := s.Validations(good); n != 1 {
		t.Errorf("validations of the valid token after many invalid tokens: got %d, want 1", n)
	}
}
