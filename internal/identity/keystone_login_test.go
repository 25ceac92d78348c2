package identity_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// loginProxy is a proxy in front of Keystone that does not answer logins, or refuses them, while it answers
// validations.
type loginProxy struct {
	http.RoundTripper
	held    chan struct{} // nil: logins are not held; otherwise they wait until it is closed
	hanging int64         // number of the first logins, which get no answer
	status  int           // of every login; 0: Keystone answers
	arrived atomic.Int64  // logins
}

func (p *loginProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost {
		return p.RoundTripper.RoundTrip(r)
	}
	if p.arrived.Add(1) <= p.hanging {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if p.held != nil {
		<-p.held
	}
	if p.status == 0 {
		return p.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: p.status,
		Header:     http.Header{"Retry-After": {"600"}},
		Body:       http.NoBody,
		Request:    r,
	}, nil
}

// startBehind starts a Keystone behind a proxy. The user ann has the password "s3cret", and the service user
// is logged in.
func startBehind(t *testing.T, p *loginProxy) (*keystonetest.Server, *identity.Keystone) {
	t.Helper()
	s, _ := start(t)
	s.User("ann", "s3cret", "demo", "member")
	settings := service(s)
	settings.Wrap = func(next http.RoundTripper) http.RoundTripper {
		p.RoundTripper = next
		return p
	}
	k := connect(t, s, settings)
	held, hanging, status := p.held, p.hanging, p.status
	p.held, p.hanging, p.status = nil, 0, 0
	expect(t, k, s.Issue(keystonetest.Token{User: "first", Project: "p"}), nil)
	p.held, p.hanging, p.status = held, hanging, status
	p.arrived.Store(0)
	return s, k
}

// logInFrom logs in the user ann from an address; an empty address is not known.
func logInFrom(ctx context.Context, k *identity.Keystone, address string) error {
	if address != "" {
		ctx = identity.WithAddress(ctx, netip.MustParseAddr(address))
	}
	_, err := k.IssueToken(ctx, login(func(*identity.Login) {}))
	return err
}

func TestIssueToken_LoginsTakeNoPlaceOfAValidation(t *testing.T) {
	t.Parallel()
	p := &loginProxy{held: make(chan struct{})}
	s, k := startBehind(t, p)
	const many = 100
	var logins sync.WaitGroup
	for range many {
		logins.Go(func() {
			if err := logInFrom(t.Context(), k, ""); err != nil {
				t.Errorf("a login after others: got error %v", err)
			}
		})
	}
	await(t, "Keystone works on as many logins as it may",
		func() bool { return p.arrived.Load() >= identity.MaxRunningLogins })
	await(t, "the other logins wait",
		func() bool { return p.arrived.Load()+int64(k.QueuedLogins()+k.Queued()) == many })

	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	token := s.Issue(keystonetest.Token{User: "other", Project: "p"})
	if _, err := k.Authenticate(request(soon, token)); err != nil {
		t.Errorf("authenticate while Keystone answers no login: got error %v, want none", err)
	}

	if n := p.arrived.Load(); n != identity.MaxRunningLogins {
		t.Errorf("logins at Keystone at the same time: got %d, want %d", n, identity.MaxRunningLogins)
	}
	close(p.held)
	logins.Wait()
}

func TestIssueToken_FailedLoginsDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	p := &loginProxy{status: http.StatusTooManyRequests}
	s, k := startBehind(t, p)
	k.SetProbeInterval(time.Hour)
	for range 3 * identity.FailuresToOpen {
		err := logInFrom(t.Context(), k, "")
		if !errors.Is(err, identity.ErrUnavailable) || identity.RetryAfter(err) != 10*time.Minute {
			t.Errorf("a login that a proxy refuses: got error %v, retry after %s, want ErrUnavailable and 10m",
				err, identity.RetryAfter(err))
		}
	}

	if k.BreakerOpen() {
		t.Error("after logins that a proxy refuses: the breaker is open, want it closed")
	}
	expect(t, k, s.Issue(keystonetest.Token{User: "other", Project: "p"}), nil)
	s.Fail(http.StatusServiceUnavailable)
	_, err := k.Authenticate(request(t.Context(), "later"))
	if after := identity.RetryAfter(err); after != 0 {
		t.Errorf("the time to wait after a failed validation: got %s, want none: only logins got one", after)
	}
}

func TestIssueToken_OpenBreakerSendsNoLogin(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetProbeInterval(time.Hour)
	openBreaker(t, s, k, http.StatusServiceUnavailable)
	s.Fail(0)
	before := s.Logins()
	if err := logInFrom(t.Context(), k, ""); !errors.Is(err, identity.ErrUnavailable) || s.Logins() != before {
		t.Errorf("a login while the breaker is open: got error %v and %d requests to Keystone, want ErrUnavailable and none",
			err, s.Logins()-before)
	}
}

func TestIssueToken_OneAddressLeavesLoginsToOthers(t *testing.T) {
	t.Parallel()
	p := &loginProxy{held: make(chan struct{})}
	_, k := startBehind(t, p)
	var logins sync.WaitGroup
	for range identity.MaxLoginsPerAddress {
		logins.Go(func() {
			if err := logInFrom(t.Context(), k, "192.0.2.1"); err != nil {
				t.Errorf("a login of an address below its limit: got error %v", err)
			}
		})
	}
	await(t, "the logins of the address wait or run", func() bool {
		return p.arrived.Load() >= identity.MaxRunningPerAddress &&
			p.arrived.Load()+int64(k.QueuedLogins()) == identity.MaxLoginsPerAddress
	})

	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := logInFrom(soon, k, "192.0.2.1")
	if !errors.Is(err, identity.ErrTooManyAttempts) || identity.RetryAfter(err) <= 0 || k.Refused() != 1 {
		t.Errorf("a login beyond the limit of its address: got error %v and %d refused, want ErrTooManyAttempts and 1",
			err, k.Refused())
	}
	if n := p.arrived.Load(); n != identity.MaxRunningPerAddress {
		t.Errorf("logins of the address at Keystone: got %d, want %d", n, identity.MaxRunningPerAddress)
	}
	logins.Go(func() {
		if err := logInFrom(t.Context(), k, "192.0.2.2"); err != nil {
			t.Errorf("a login of another address: got error %v", err)
		}
	})
	await(t, "the login of the other address is at Keystone",
		func() bool { return p.arrived.Load() > identity.MaxRunningPerAddress })
	close(p.held)
	logins.Wait()
}

// Two addresses can occupy all places with logins to a domain whose LDAP server hangs.
func TestIssueToken_HangingLoginsEndInTimeForOthers(t *testing.T) {
	t.Parallel()
	p := &loginProxy{hanging: identity.MaxRunningLogins}
	_, k := startBehind(t, p)
	k.SetLoginTime(time.Second)
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var hanging sync.WaitGroup
	for i := range identity.MaxRunningLogins {
		hanging.Go(func() {
			address := fmt.Sprintf("192.0.2.%d", 1+i/identity.MaxRunningPerAddress)
			if err := logInFrom(soon, k, address); !errors.Is(err, identity.ErrUnavailable) {
				t.Errorf("a login that Keystone does not answer: got error %v, want ErrUnavailable", err)
			}
		})
	}
	await(t, "Keystone works on as many logins as it may",
		func() bool { return p.arrived.Load() == identity.MaxRunningLogins })
	k.SetLoginTime(time.Hour)

	if err := logInFrom(soon, k, "192.0.2.9"); err != nil {
		t.Errorf("a login of another address: got error %v, want none", err)
	}
	hanging.Wait()
}

func TestIssueToken_LoginsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   error
	}{
		"successful": {0, nil},
		"failed":     {http.StatusInternalServerError, identity.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &loginProxy{status: c.status}
			s, k := startBehind(t, p)
			for i := range identity.FreeLogins + 1 {
				if err := logInFrom(t.Context(), k, "192.0.2.1"); !errors.Is(err, c.want) {
					t.Fatalf("login %d: got error %v, want %v", i+1, err, c.want)
				}
			}
			err := logInFrom(t.Context(), k, "192.0.2.1")
			if !errors.Is(err, identity.ErrTooManyAttempts) || identity.RetryAfter(err) <= 0 ||
				p.arrived.Load() != identity.FreeLogins+1 {
				t.Errorf("one login too many: got error %v and %d logins at Keystone, want ErrTooManyAttempts and %d",
					err, p.arrived.Load(), identity.FreeLogins+1)
			}
			if err := logInFrom(t.Context(), k, "192.0.2.2"); !errors.Is(err, c.want) {
				t.Errorf("a login from another address: got error %v, want %v", err, c.want)
			}
			expectFrom(t, k, "192.0.2.1", s.Issue(keystonetest.Token{User: "u", Project: "p"}), nil)
			for range 60 { // for a minute
				s.Advance(time.Second)
				_ = logInFrom(t.Context(), k, "192.0.2.1")
			}
			if n := p.arrived.Load() - identity.FreeLogins - 2; n < 10 || n > 40 {
				t.Errorf("logins in a minute of an address that tries one each second: got %d, want 10 to 40", n)
			}
			s.Advance(2 * time.Minute)
			if err := logInFrom(t.Context(), k, "192.0.2.1"); !errors.Is(err, c.want) {
				t.Errorf("a login after a pause: got error %v, want %v", err, c.want)
			}
		})
	}
}
