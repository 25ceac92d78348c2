package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

func start(t *testing.T) (*keystonetest.Server, *identity.Keystone) {
	t.Helper()
	s := keystonetest.New(t)
	s.User("berth", "secret", "service", "service")
	return s, connect(t, s, service(s))
}

func service(s *keystonetest.Server) identity.Service {
	return identity.Service{AuthURL: s.URL, Username: "berth", Password: "secret", Project: "service", UserDomain: "Default", ProjectDomain: "Default"}
}

func connect(t *testing.T, s *keystonetest.Server, as identity.Service) *identity.Keystone {
	t.Helper()
	k, err := identity.NewKeystone(as)
	if err != nil {
		t.Fatal(err)
	}
	k.SetClock(s.Now)
	return k
}

func request(ctx context.Context, token string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/placement/", nil)
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	return r
}

func expect(t *testing.T, k *identity.Keystone, token string, want error) identity.Caller {
	t.Helper()
	c, err := k.Authenticate(request(t.Context(), token))
	if !errors.Is(err, want) {
		t.Fatalf("token %s: got %v, want %v", token, err, want)
	}
	return c
}

func TestTokenTellsScopeAndRoles(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	for name, c := range map[string]struct {
		token keystonetest.Token
		want  identity.Caller
	}{
		"project":  {keystonetest.Token{User: "u1", Project: "p1", Roles: []string{"member", "reader"}}, identity.Caller{User: "u1", Project: "p1", Roles: []string{"member", "reader"}}},
		"admin":    {keystonetest.Token{User: "u2", Project: "p2", Roles: []string{"admin"}}, identity.Caller{User: "u2", Project: "p2", Roles: []string{"admin"}}},
		"system":   {keystonetest.Token{User: "u3", System: true, Roles: []string{"reader"}}, identity.Caller{User: "u3", System: true, Roles: []string{"reader"}}},
		"domain":   {keystonetest.Token{User: "u4", Domain: "d1", Roles: []string{"admin"}}, identity.Caller{User: "u4"}},
		"unscoped": {keystonetest.Token{User: "u5"}, identity.Caller{User: "u5"}},
	} {
		if d := cmp.Diff(c.want, expect(t, k, s.Issue(c.token), nil)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestIdentityHeadersFromOutsideCountForNothing(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	r := request(t.Context(), s.Issue(keystonetest.Token{User: "u1", Project: "p1", Roles: []string{"member"}}))
	for name, value := range map[string]string{"X-Roles": "admin", "X-Role": "admin", "X-Project-Id": "p2", "X-User-Id": "u2",
		"X-Identity-Status": "Confirmed", "X-Is-Admin-Project": "True", "Openstack-System-Scope": "all"} {
		r.Header.Set(name, value)
	}

	c, err := k.Authenticate(r)

	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(identity.Caller{User: "u1", Project: "p1", Roles: []string{"member"}}, c); d != "" {
		t.Error(d)
	}
	if _, err := k.Authenticate(withoutToken(r)); !errors.Is(err, identity.ErrUnauthenticated) {
		t.Errorf("headers without a token: %v", err)
	}
}

func withoutToken(r *http.Request) *http.Request {
	r.Header.Del("X-Auth-Token")
	return r
}

func TestWhatCannotBeATokenIsRefusedWithoutAsking(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	for _, token := range []string{"", "two words", "tab\tbed", "ümlaut", "\x00", strings.Repeat("a", 5000)} {
		expect(t, k, token, identity.ErrUnauthenticated)
		if s.Validations(token) != 0 {
			t.Errorf("Keystone was asked about %.20q", token)
		}
	}
}

func TestInvalidTokenAndSilentKeystoneAreToldApart(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})

	expect(t, k, "nonsense", identity.ErrUnauthenticated)
	for _, status := range []int{500, 502, 503, 429, 302, 301} {
		s.Fail(status)
		expect(t, k, good, identity.ErrUnavailable)
		expect(t, k, "other", identity.ErrUnavailable)
	}
	s.Fail(0)
	expect(t, k, good, nil) // an outage is not remembered
	expect(t, k, "other", identity.ErrUnauthenticated)
}

func TestUnreachableKeystoneIsUnavailable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	k, err := identity.NewKeystone(identity.Service{AuthURL: gone.URL, Username: "u", Password: "p", Project: "s"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, k, "token", identity.ErrUnavailable)
}

func TestVerdictsAreRemembered(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1", Roles: []string{"member"}})
	first := expect(t, k, good, nil)
	expect(t, k, "bad", identity.ErrUnauthenticated)

	s.Fail(http.StatusServiceUnavailable)
	s.Advance(9 * time.Second)
	expect(t, k, "bad", identity.ErrUnauthenticated)
	s.Advance(time.Second)
	expect(t, k, "bad", identity.ErrUnavailable) // forgotten: a new token may spread slowly
	s.Advance(4 * time.Minute)

	if d := cmp.Diff(first, expect(t, k, good, nil)); d != "" {
		t.Error(d)
	}
	if n := s.Validations(good); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestRevokedTokenEndsWithinFiveMinutes(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	expect(t, k, token, nil)

	s.Revoke(token)
	s.Advance(5 * time.Minute)

	expect(t, k, token, identity.ErrUnauthenticated)
}

func TestTokenEndsWithItsExpiry(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1", Expires: s.Now().Add(90 * time.Second)})
	expect(t, k, token, nil)

	s.Advance(89 * time.Second)
	expect(t, k, token, nil)
	s.Advance(time.Second)

	s.Fail(http.StatusServiceUnavailable)
	expect(t, k, token, identity.ErrUnavailable) // no longer believed from memory
	s.Fail(0)
	expect(t, k, token, identity.ErrUnauthenticated)
}

func TestLateClockDoesNotProlongAToken(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1", Expires: s.Now().Add(time.Minute)})
	k.SetClock(func() time.Time { return s.Now().Add(2 * time.Minute) })
	expect(t, k, token, identity.ErrUnauthenticated)
}

func TestOneQuestionPerTokenAtATime(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	tokens := []string{"bad", s.Issue(keystonetest.Token{User: "u1", Project: "p1"}), s.Issue(keystonetest.Token{User: "u2", Project: "p2"})}
	_, release := s.Hold()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			c, err := k.Authenticate(request(t.Context(), tokens[i%3]))
			want := fmt.Sprintf("u%d", i%3)
			if i%3 == 0 && !errors.Is(err, identity.ErrUnauthenticated) || i%3 != 0 && (err != nil || c.User != want) {
				t.Errorf("token %d: %+v, %v", i%3, c, err)
			}
		})
	}
	release()
	all.Wait()

	for _, token := range tokens {
		if n := s.Validations(token); n != 1 {
			t.Errorf("Keystone was asked %d times about %s", n, token)
		}
	}
	if n := s.Logins(); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func TestWhoLeavesDoesNotSpoilTheQuestionForOthers(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	arrived, release := s.Hold()
	defer release()
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := k.Authenticate(request(leaving, token))
		left <- err
	}()

	<-arrived
	leave()
	if err := <-left; !errors.Is(err, identity.ErrUnavailable) {
		t.Errorf("who left a slow Keystone got %v", err)
	}
	release()

	expect(t, k, token, nil)
	if n := s.Logins(); n != 1 {
		t.Errorf("the question was broken off: %d logins", n)
	}
}

func TestMemoryOfVerdictsIsBounded(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetLimit(5)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	expect(t, k, good, nil)

	for i := range 40 {
		expect(t, k, fmt.Sprintf("stranger-%d", i), identity.ErrUnauthenticated)
	}

	if n := k.Remembered(); n != 6 {
		t.Errorf("%d verdicts are remembered", n)
	}
	expect(t, k, good, nil)
	if n := s.Validations(good); n != 1 {
		t.Errorf("strangers cost the valid token its verdict: asked %d times", n)
	}
}
