package identity_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	return identity.Service{
		AuthURL:       s.URL,
		Username:      "berth",
		Password:      "secret",
		Project:       "service",
		UserDomain:    "Default",
		ProjectDomain: "Default",
	}
}

func connect(t *testing.T, s *keystonetest.Server, as identity.Service) *identity.Keystone {
	t.Helper()
	k, err := identity.NewKeystone(as)
	if err != nil {
		t.Fatal(err)
	}
	k.SetClock(s.Now)
	k.SetWait(time.Hour) // the machine that runs the tests may be slow
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
		t.Fatalf("authenticate with the token %s: got error %v, want %v", token, err, want)
	}
	return c
}

func TestKeystone_ScopeAndRolesOfAToken(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, expect(t, k, s.Issue(c.token), nil)); d != "" {
				t.Errorf("caller of the token with the scope %s (-want +got):\n%s", name, d)
			}
		})
	}
}

func TestKeystone_IgnoresIdentityHeaders(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	r := request(t.Context(),
		s.Issue(keystonetest.Token{User: "u1", Project: "p1", Roles: []string{"member"}}))
	for name, value := range map[string]string{
		"X-Roles":                "admin",
		"X-Role":                 "admin",
		"X-Project-Id":           "p2",
		"X-User-Id":              "u2",
		"X-Identity-Status":      "Confirmed",
		"X-Is-Admin-Project":     "True",
		"Openstack-System-Scope": "all",
	} {
		t.Run(name, func(t *testing.T) {
			r.Header.Set(name, value)
		})
	}

	c, err := k.Authenticate(r)

	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(identity.Caller{User: "u1", Project: "p1", Roles: []string{"member"}}, c); d != "" {
		t.Error(d)
	}
	if _, err := k.Authenticate(withoutToken(r)); !errors.Is(err, identity.ErrUnauthenticated) {
		t.Errorf(
			"authenticate with identity headers but without a token: got error %v, want ErrUnauthenticated",
			err,
		)
	}
}

func withoutToken(r *http.Request) *http.Request {
	r.Header.Del("X-Auth-Token")
	return r
}

func TestKeystone_MalformedTokenIsRefusedLocally(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	for _, token := range []string{"", "two words", "tab\tbed", "ümlaut", "\x00", strings.Repeat("a", 5000)} {
		t.Run(token, func(t *testing.T) {
			expect(t, k, token, identity.ErrUnauthenticated)
			if s.Validations(token) != 0 {
				t.Errorf(
					"authenticate with the malformed token %.20q: got a request to Keystone, want none",
					token,
				)
			}
		})
	}
}

func TestKeystone_InvalidTokenIs401AndOutageIs503(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	expect(t, k, "nonsense", identity.ErrUnauthenticated)
	for _, status := range []int{500, 502, 503, 429, 302, 301} {
		k := connect(t, s, service(s))
		s.Fail(status)
		expect(t, k, good, identity.ErrUnavailable)
		expect(t, k, "other", identity.ErrUnavailable)

		s.Fail(0)
		expect(t, k, good, nil) // an ErrUnavailable is not cached
		expect(t, k, "other", identity.ErrUnauthenticated)
	}
}

func TestKeystone_AnswerOfAnotherServiceIs503(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"404 of Keystone":           {404, `{"error":{"code":404,"message":"Could not find token.","title":"Not Found"}}`, identity.ErrUnauthenticated},
		"404 of a proxy":            {404, `<html><h1>404 Not Found</h1></html>`, identity.ErrUnavailable},
		"404 without a body":        {404, ``, identity.ErrUnavailable},
		"404 of a router":           {404, `{"message":"The requested URL was not found on the server."}`, identity.ErrUnavailable},
		"404 of Nova":               {404, `{"itemNotFound":{"code":404,"message":"not found"}}`, identity.ErrUnavailable},
		"404 with another error":    {404, `{"error":{"code":500,"message":"oops","title":"Internal Server Error"}}`, identity.ErrUnavailable},
		"404 whose error is a text": {404, `{"error":"not found"}`, identity.ErrUnavailable},
		"200 of a web page":         {200, `<html>It works!</html>`, identity.ErrUnavailable},
		"200 with an empty object":  {200, `{}`, identity.ErrUnavailable},
		"200 with an empty token":   {200, `{"token":{}}`, identity.ErrUnavailable},
		"200 without an expiry":     {200, `{"token":{"user":{"id":"u"}}}`, identity.ErrUnavailable},
		"200 with a list":           {200, `[{"token":{"user":{"id":"u"}}}]`, identity.ErrUnavailable},
		"200 with a number as user": {200, `{"token":{"expires_at":"2999-01-01T00:00:00Z","user":{"id":7}}}`, identity.ErrUnavailable},
		"200 with an odd expiry":    {200, `{"token":{"expires_at":"never","user":{"id":"u"}}}`, identity.ErrUnavailable},
		"200 with a text as roles":  {200, `{"token":{"expires_at":"2999-01-01T00:00:00Z","user":{"id":"u"},"roles":"admin"}}`, identity.ErrUnavailable},
		"200 with a deep value":     {200, `{"token":{"x":` + strings.Repeat("[", 100_000), identity.ErrUnavailable},
		"200 with many roles": {
			200, `{"token":{"expires_at":"2999-01-01T00:00:00Z","user":{"id":"u"},"project":{"id":"p"},"roles":[{}` +
				strings.Repeat(`,{"name":"a role with a long name"}`, 800) + `]}}`, identity.ErrUnavailable,
		},
		"200 with a long user": {
			200, `{"token":{"expires_at":"2999-01-01T00:00:00Z","user":{"id":"` + strings.Repeat("u", 20<<10) + `"}}}`,
			identity.ErrUnavailable,
		},
		"200 with a huge catalog": {
			200, `{"token":{"expires_at":"2999-01-01T00:00:00Z","user":{"id":"u"},"catalog":[{}` +
				strings.Repeat(`,{}`, 300_000) + `]}}`, identity.ErrUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t)
			target, err := url.Parse(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			keystone := httputil.NewSingleHostReverseProxy(target)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost { // the login of the service user
					keystone.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(front.Close)
			as := service(s)
			as.AuthURL = front.URL
			expect(t, connect(t, s, as), "token", c.want)
		})
	}
}

func TestKeystone_UnreachableIsUnavailable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	k, err := identity.NewKeystone(identity.Service{
		AuthURL:  gone.URL,
		Username: "u",
		Password: "p",
		Project:  "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, k, "token", identity.ErrUnavailable)
}

func TestKeystone_LateClockDoesNotProlongAToken(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1", Expires: s.Now().Add(time.Minute)})
	k.SetClock(func() time.Time { return s.Now().Add(2 * time.Minute) })
	expect(t, k, token, identity.ErrUnauthenticated)
}

func TestKeystone_OneValidationPerTokenAtATime(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	tokens := []string{
		"bad",
		s.Issue(keystonetest.Token{User: "u1", Project: "p1"}),
		s.Issue(keystonetest.Token{User: "u2", Project: "p2"}),
	}
	_, release := s.Hold()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			c, err := k.Authenticate(request(t.Context(), tokens[i%3]))
			want := fmt.Sprintf("u%d", i%3)
			if i%3 == 0 && !errors.Is(err, identity.ErrUnauthenticated) ||
				i%3 != 0 && (err != nil || c.User != want) {
				t.Errorf(
					"authenticate with token %d: got caller %+v, error %v; want its user, or ErrUnauthenticated for the invalid token",
					i%3, c, err,
				)
			}
		})
	}
	release()
	all.Wait()

	for _, token := range tokens {
		if n := s.Validations(token); n != 1 {
			t.Errorf("validations for concurrent requests: got %d of token %s, want 1", n, token)
		}
	}
	if n := s.Logins(); n != 1 {
		t.Errorf("logins of the service user for concurrent requests: got %d, want 1", n)
	}
}

func TestKeystone_CancelledRequestDoesNotCancelTheValidation(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	arrived, release := s.Hold()
	defer release()
	cancelled, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := k.Authenticate(request(cancelled, token))
		left <- err
	}()

	<-arrived
	cancel()
	if err := <-left; !errors.Is(err, identity.ErrUnavailable) {
		t.Errorf("authenticate with a cancelled context: got error %v, want ErrUnavailable", err)
	}
	release()

	expect(t, k, token, nil)
	if n := s.Logins(); n != 1 {
		t.Errorf(
			"logins of the service user: got %d, want 1, because the validation continues after its request was cancelled",
			n,
		)
	}
}

func TestService_WrongCredentialsAreUnavailable(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	s.User("weak", "secret", "service", "member")
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	for message, change := range map[string]func(*identity.Service){
		"check OS_USERNAME": func(a *identity.Service) { a.Password = "hunter2" },
		"role service":      func(a *identity.Service) { a.Username = "weak" },
	} {
		t.Run(message, func(t *testing.T) {
			as := service(s)
			change(&as)
			k := connect(t, s, as)

			_, err := k.Authenticate(request(t.Context(), good))

			if !errors.Is(err, identity.ErrUnavailable) || !strings.Contains(err.Error(), message) ||
				strings.Contains(err.Error(), as.Password) {
				t.Errorf(
					"authenticate with wrong credentials of the service user: want ErrUnavailable with %q and without the password, got %v",
					message,
					err,
				)
			}
		})
	}
}

func TestService_TokenIsRenewed(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	validate := func() {
		t.Helper()
		expect(t, k, s.Issue(keystonetest.Token{User: "u1", Project: "p1"}), nil)
	}
	validate()
	validate()
	if n := s.Logins(); n != 1 {
		t.Fatalf("logins of the service user for two validations: got %d, want 1", n)
	}

	s.Advance(59*time.Minute + 30*time.Second) // the service token is about to expire
	validate()
	if n := s.Logins(); n != 2 {
		t.Errorf("logins of the service user after its token expired: got %d, want 2", n)
	}
	s.RevokeUser("berth")
	validate()
	if n := s.Logins(); n != 3 {
		t.Errorf("logins of the service user after its token was revoked: got %d, want 3", n)
	}
	s.Advance(5 * time.Second) // until a rejected token is renewed again
	s.RevokeUser("berth")
	// an invalid token must not be mistaken for an expired service token
	expect(t, k, "nonsense", identity.ErrUnauthenticated)
}

func TestService_IncompleteSettingsAreRefused(t *testing.T) {
	t.Parallel()
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := identity.Service{
		AuthURL:  "http://keystone.example:5000/v3",
		Username: "u",
		Password: "p",
		Project:  "s",
	}
	for message, change := range map[string]func(*identity.Service){
		"OS_AUTH_URL":    func(s *identity.Service) { s.AuthURL = "" },
		"OS_USERNAME":    func(s *identity.Service) { s.Username = "" },
		"OS_PASSWORD":    func(s *identity.Service) { s.Password = "" },
		"OS_CACERT":      func(s *identity.Service) { s.CAFile = pem },
		"OS_CACERT: ope": func(s *identity.Service) { s.CAFile = pem + ".gone" },
	} {
		t.Run(message, func(t *testing.T) {
			as := full
			change(&as)
			if _, err := identity.NewKeystone(as); err == nil || !strings.Contains(err.Error(), message) {
				t.Errorf("NewKeystone with an invalid setting: want an error with %q, got %v", message, err)
			}
		})
	}
	if k, err := identity.NewKeystone(full); err != nil ||
		k.Challenge() != `Keystone uri="http://keystone.example:5000/v3"` {
		t.Errorf(
			"NewKeystone with valid settings: got %v, error %v; want the challenge with Keystone's address",
			k,
			err,
		)
	}
}

func TestService_RedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	var elsewhere atomic.Int32
	other := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }),
	)
	t.Cleanup(other.Close)
	front := httptest.NewServer(
		http.RedirectHandler(other.URL+"/v3/auth/tokens", http.StatusTemporaryRedirect),
	)
	t.Cleanup(front.Close)
	as := service(s)
	as.AuthURL = front.URL

	expect(t, connect(t, s, as), "token", identity.ErrUnavailable)

	if elsewhere.Load() != 0 {
		t.Error("authenticate when Keystone redirects: got a request to another host, want none")
	}
}

// A server that is no Keystone, or a hostile one, answers logins with tokens that berth cannot use.
func TestService_UnusableTokenIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{
		"no token":         "",
		"a long token":     strings.Repeat("x", 5000),
		"a token of words": "to ken",
		"an odd token":     "tok\u00e9n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t)
			var requests atomic.Int32
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) > 100 {
					return
				}
				if r.Method == http.MethodPost {
					w.Header().Set("X-Subject-Token", token)
					w.WriteHeader(http.StatusCreated)
					_, _ = io.WriteString(w, `{"token":{"expires_at":"2999-01-01T00:00:00Z"}}`)
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(front.Close)
			as := service(s)
			as.AuthURL = front.URL
			k := connect(t, s, as)
			expect(t, k, "token", identity.ErrUnavailable)
			if n := requests.Load(); n > 4 {
				t.Errorf("validate with %s of the service user: got %d requests, want a few", name, n)
			}
			requests.Store(0)
			_, err := k.IssueToken(t.Context(), login(func(*identity.Login) {}))
			if !errors.Is(err, identity.ErrUnavailable) || requests.Load() != 1 {
				t.Errorf("log in a user with %s as the answer: got error %v after %d requests, want ErrUnavailable after 1",
					name, err, requests.Load())
			}
		})
	}
}

func TestFresh_NeverReturnsTheRejectedToken(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	fresh := func(rejected string) string {
		t.Helper()
		token, err := k.Fresh(t.Context(), rejected)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}

	first := fresh("")
	if again := fresh(""); again != first {
		t.Errorf("Fresh, called while the token %s is valid: got %s, want the same token", first, again)
	}
	second := fresh(first)
	if second == first {
		t.Error("Fresh with a rejected token: got the same token, want another one")
	}
	if late := fresh(first); late != second {
		t.Error("Fresh with the first token rejected again: got a third token, want the second one")
	}
	if n := s.Logins(); n != 2 {
		t.Errorf("logins of the service user: got %d, want 2", n)
	}
}

// A broken Nova rejects every token.
func TestFresh_ServiceThatRejectsEveryTokenCausesFewLogins(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	token, err := k.Fresh(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		var next string
		if next, err = k.Fresh(t.Context(), token); err == nil {
			token = next
		}
	}
	if n := s.Logins(); n != 2 || !errors.Is(err, identity.ErrUnavailable) {
		t.Errorf("100 rejected tokens: got %d logins and the error %v at last, want 2 logins and ErrUnavailable", n, err)
	}
	expect(t, k, s.Issue(keystonetest.Token{User: "u1", Project: "p1"}), nil)
	if n := s.Logins(); n != 2 {
		t.Errorf("logins after a validation meanwhile: got %d, want no further one", n)
	}

	s.Advance(5 * time.Second)
	if next, err := k.Fresh(t.Context(), token); err != nil || next == token {
		t.Errorf("token that is rejected five seconds later: got the error %v, want another token", err)
	}
}
