package identity_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

// login returns the login of the user ann, whose password is "s3cret".
func login(change func(*identity.Login)) identity.Login {
	l := identity.Login{
		User:          "ann",
		UserDomain:    "Default",
		Password:      "s3cret",
		Project:       "demo",
		ProjectDomain: "Default",
	}
	change(&l)
	return l
}

func TestIssueToken_NeedsEveryPartOfTheLogin(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	s.User("ann", "s3cret", "demo", "member")
	for name, c := range map[string]struct {
		change func(*identity.Login)
		want   error
	}{
		"right":                {func(*identity.Login) {}, nil},
		"wrong user":           {func(l *identity.Login) { l.User = "bob" }, identity.ErrUnauthenticated},
		"wrong password":       {func(l *identity.Login) { l.Password = "S3cret" }, identity.ErrUnauthenticated},
		"wrong domain":         {func(l *identity.Login) { l.UserDomain = "other" }, identity.ErrUnauthenticated},
		"wrong project":        {func(l *identity.Login) { l.Project = "service" }, identity.ErrUnauthenticated},
		"wrong project domain": {func(l *identity.Login) { l.ProjectDomain = "other" }, identity.ErrUnauthenticated},
		"JSON":                 {func(l *identity.Login) { l.User = `ann","password":"` }, identity.ErrUnauthenticated},
	} {
		token, err := k.IssueToken(t.Context(), login(c.change))
		if !errors.Is(err, c.want) || (token == "") != (c.want != nil) {
			t.Errorf("%s: got the token %q, error %v; want the error %v", name, token, err, c.want)
		}
		if err == nil {
			got := expect(t, k, token, nil)
			if got.User != "ann" || got.Project != "demo" || !got.Has("member") {
				t.Errorf("%s: got the caller %+v, want ann in demo", name, got)
			}
		}
	}
}

func TestIssueToken_EachLoginAsksKeystone(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	s.User("ann", "s3cret", "demo", "member")
	issued := map[string]bool{}
	for range 3 {
		token, err := k.IssueToken(t.Context(), login(func(*identity.Login) {}))
		if err != nil {
			t.Fatal(err)
		}
		issued[token] = true
	}
	if len(issued) != 3 || s.Logins() != 3 {
		t.Errorf("3 logins: got %d tokens and %d requests to Keystone, want 3 and 3", len(issued), s.Logins())
	}
}

// Refused logins and invalid tokens of an address count together.
func TestIssueToken_RefusedLoginsAreDelayedByAddress(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	s.User("ann", "s3cret", "demo", "member")
	try := func(address string, change func(*identity.Login)) error {
		_, err := k.IssueToken(
			identity.WithAddress(t.Context(), netip.MustParseAddr(address)), login(change))
		return err
	}
	for i := range identity.FreeBadTokens {
		if err := try("192.0.2.1", func(l *identity.Login) { l.Password = fmt.Sprint(i) }); !errors.Is(err, identity.ErrUnauthenticated) {
			t.Fatalf("refused login %d: got error %v", i, err)
		}
	}
	expectFrom(t, k, "192.0.2.1", "bad", identity.ErrUnauthenticated)
	before := s.Logins()
	err := try("192.0.2.1", func(*identity.Login) {})
	if !errors.Is(err, identity.ErrTooManyAttempts) || identity.RetryAfter(err) <= 0 || s.Logins() != before {
		t.Errorf("a login after too many refused ones: got error %v and %d requests to Keystone, want ErrTooManyAttempts and none",
			err, s.Logins()-before)
	}
	if err := try("192.0.2.2", func(*identity.Login) {}); err != nil {
		t.Errorf("a login from another address: got error %v", err)
	}
}

// An error must not contain the password, even if the server at OS_AUTH_URL repeats the request.
func TestIssueToken_ErrorsDoNotContainThePassword(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 302, 400, 401, 403, 404, 500, 503, 0} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Location", "/?"+string(body))
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}))
		t.Cleanup(server.Close)
		k := connect(t, keystonetest.New(t), identity.Service{
			AuthURL:  server.URL,
			Username: "berth",
			Password: "p",
			Project:  "service",
		})
		want := identity.ErrUnavailable
		if status == 400 || status == 401 {
			want = identity.ErrUnauthenticated
		}
		token, err := k.IssueToken(t.Context(), login(func(*identity.Login) {}))
		if !errors.Is(err, want) || token != "" || strings.Contains(fmt.Sprintf("%v %+v", err, err), "s3cret") {
			t.Errorf("Keystone answers %d: got the token %q, error %v; want the error %v without the password",
				status, token, err, want)
		}
	}
}
