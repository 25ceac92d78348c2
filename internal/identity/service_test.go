package identity_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

func TestWrongServiceUserIsTheOperatorsFaultAndSaysSo(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	s.User("weak", "secret", "service", "member")
	good := s.Issue(keystonetest.Token{User: "u1", Project: "p1"})
	for say, change := range map[string]func(*identity.Service){
		"check OS_USERNAME": func(a *identity.Service) { a.Password = "hunter2" },
		"role service":      func(a *identity.Service) { a.Username = "weak" },
	} {
		as := service(s)
		change(&as)
		k := connect(t, s, as)

		_, err := k.Authenticate(request(t.Context(), good))

		if !errors.Is(err, identity.ErrUnavailable) || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), as.Password) {
			t.Errorf("want unavailable and %q, got %v", say, err)
		}
	}
}

func TestServiceUserLogsInAgain(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	ask := func() {
		t.Helper()
		expect(t, k, s.Issue(keystonetest.Token{User: "u1", Project: "p1"}), nil)
	}
	ask()
	ask()
	if n := s.Logins(); n != 1 {
		t.Fatalf("%d logins for two questions", n)
	}

	s.Advance(59*time.Minute + 30*time.Second) // ours is about to expire
	ask()
	if n := s.Logins(); n != 2 {
		t.Errorf("%d logins after the token's time", n)
	}
	s.RevokeUser("berth")
	ask()
	if n := s.Logins(); n != 3 {
		t.Errorf("%d logins after it was revoked", n)
	}
	s.RevokeUser("berth")
	expect(t, k, "nonsense", identity.ErrUnauthenticated) // not mistaken for our own token's end
}

func TestIncompleteServiceUserIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := identity.Service{AuthURL: "http://keystone.example:5000/v3", Username: "u", Password: "p", Project: "s"}
	for say, change := range map[string]func(*identity.Service){
		"OS_AUTH_URL":    func(s *identity.Service) { s.AuthURL = "" },
		"OS_USERNAME":    func(s *identity.Service) { s.Username = "" },
		"OS_PASSWORD":    func(s *identity.Service) { s.Password = "" },
		"OS_CACERT":      func(s *identity.Service) { s.CAFile = pem },
		"OS_CACERT: ope": func(s *identity.Service) { s.CAFile = pem + ".gone" },
	} {
		as := full
		change(&as)
		if _, err := identity.NewKeystone(as); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", say, err)
		}
	}
	if k, err := identity.NewKeystone(full); err != nil || k.Challenge() != `Keystone uri="http://keystone.example:5000/v3"` {
		t.Errorf("%v, %v", k, err)
	}
}

func TestRedirectCarriesNoTokenAway(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	front := httptest.NewServer(http.RedirectHandler(other.URL+"/v3/auth/tokens", http.StatusTemporaryRedirect))
	t.Cleanup(front.Close)
	as := service(s)
	as.AuthURL = front.URL

	expect(t, connect(t, s, as), "token", identity.ErrUnavailable)

	if elsewhere.Load() != 0 {
		t.Error("the password was sent on")
	}
}

func TestFreshTokenIsAnotherThanTheRejectedOne(t *testing.T) {
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
		t.Errorf("%s was replaced by %s without need", first, again)
	}
	second := fresh(first)
	if second == first {
		t.Error("the rejected token was given again")
	}
	if late := fresh(first); late != second {
		t.Error("who was rejected late cost the others their token")
	}
	if n := s.Logins(); n != 2 {
		t.Errorf("%d logins", n)
	}
}
