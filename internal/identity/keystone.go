package identity

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/sync/singleflight"
)

const (
	// trust is how long a valid token is believed without asking again: within it a revoked one may still pass.
	trust = 5 * time.Minute
	// distrust is how long an invalid token is refused without asking again.
	distrust = 10 * time.Second
	// patience is how long a request waits for Keystone before it is told to try later.
	patience = 10 * time.Second
	// renewal is how long before its end our own token is replaced.
	renewal = time.Minute
	// maxToken is longer than any token that Keystone issues.
	maxToken = 4096
	// maxVerdicts bounds the memory of valid tokens, and that of invalid ones, which a stranger can fill.
	maxVerdicts = 10_000
	// maxConns bounds what strangers' tokens can ask of Keystone at a time.
	maxConns = 32
)

// Service is berth's own user at Keystone, which asks whose the tokens of others are.
type Service struct {
	AuthURL                   string // with or without /v3
	Username, Password        string
	Project                   string
	UserDomain, ProjectDomain string // names
	CAFile                    string // trusted beside the system's authorities; empty for those alone
}

// Keystone asks Keystone whose a token is and remembers the verdict for a while. It believes the token alone:
// identity headers of the request count for nothing.
type Keystone struct {
	service  Service
	endpoint string // ends in /v3/
	http     *http.Client
	now      func() time.Time
	valid    *verdicts
	invalid  *verdicts
	flights  singleflight.Group // one question per token at a time

	mu  sync.Mutex
	own session
}

// session is the service user's own token.
type session struct {
	token string
	until time.Time
}

// NewKeystone does not reach Keystone yet: berth starts while it is down.
func NewKeystone(s Service) (*Keystone, error) {
	if s.AuthURL == "" || s.Username == "" || s.Password == "" || s.Project == "" {
		return nil, errors.New("keystone: OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME of berth's service user are needed")
	}
	provider, err := openstack.NewClient(s.AuthURL)
	if err != nil {
		return nil, fmt.Errorf("keystone: OS_AUTH_URL: %w", err)
	}
	client, err := httpClient(s.CAFile)
	if err != nil {
		return nil, err
	}
	return &Keystone{service: s, endpoint: provider.IdentityBase + "v3/", http: client, now: time.Now,
		valid: newVerdicts(maxVerdicts), invalid: newVerdicts(maxVerdicts)}, nil
}

// httpClient follows no redirect: it would carry tokens to another host.
func httpClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = maxConns, maxConns
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("keystone: OS_CACERT: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("keystone: OS_CACERT: no certificate in %s", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// Challenge tells a client without credentials where to get some.
func (k *Keystone) Challenge() string { return fmt.Sprintf("Keystone uri=%q", k.service.AuthURL) }

// Authenticate finds whose the request's X-Auth-Token is.
func (k *Keystone) Authenticate(r *http.Request) (Caller, error) {
	token := r.Header.Get("X-Auth-Token")
	if err := plausible(token); err != nil {
		return Caller{}, err
	}
	key := sha256.Sum256([]byte(token))
	if c, known, err := k.remember(key); known {
		return c, err
	}
	v, err := k.once(r.Context(), string(key[:]), func(ctx context.Context) (any, error) { return k.ask(ctx, token, key) })
	if err != nil {
		return Caller{}, err
	}
	return v.(Caller), nil
}

// remember gives the verdict on a token that was asked about lately.
func (k *Keystone) remember(key [sha256.Size]byte) (c Caller, known bool, err error) {
	now := k.now()
	if c, ok := k.valid.find(key, now); ok {
		return c, true, nil
	}
	if _, ok := k.invalid.find(key, now); ok {
		return Caller{}, true, fmt.Errorf("%w: the token is not valid", ErrUnauthenticated)
	}
	return Caller{}, false, nil
}

// plausible refuses what cannot be a token, so that it is not sent on.
func plausible(token string) error {
	if token == "" {
		return fmt.Errorf("%w: no X-Auth-Token", ErrUnauthenticated)
	}
	if len(token) > maxToken {
		return fmt.Errorf("%w: the token is too long", ErrUnauthenticated)
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return fmt.Errorf("%w: the token is malformed", ErrUnauthenticated)
		}
	}
	return nil
}

// once runs ask once for all who want the same key at the same time. It outlives the request that asked first:
// the others still wait.
func (k *Keystone) once(ctx context.Context, key string, ask func(context.Context) (any, error)) (any, error) {
	answer := k.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return ask(ctx)
	})
	select {
	case a := <-answer:
		return a.Val, a.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

// ask gets Keystone's verdict on a token and remembers it, unless that was done just before.
func (k *Keystone) ask(ctx context.Context, token string, key [sha256.Size]byte) (Caller, error) {
	if c, known, err := k.remember(key); known {
		return c, err
	}
	answer, err := k.validate(ctx, token)
	if err != nil {
		if errors.Is(err, ErrUnauthenticated) {
			k.invalid.keep(key, Caller{}, k.now().Add(distrust))
		}
		return Caller{}, err
	}
	c, now := answer.caller(), k.now()
	until := now.Add(trust)
	if answer.ExpiresAt.Before(until) {
		until = answer.ExpiresAt
	}
	if !now.Before(until) {
		k.invalid.keep(key, Caller{}, now.Add(distrust))
		return Caller{}, fmt.Errorf("%w: the token has expired", ErrUnauthenticated)
	}
	k.valid.keep(key, c, until)
	return c, nil
}

// validate asks with our own token. When Keystone no longer takes that one, it is renewed once.
func (k *Keystone) validate(ctx context.Context, token string) (subject, error) {
	for rejected := ""; ; {
		own, err := k.Fresh(ctx, rejected)
		if err != nil {
			return subject{}, err
		}
		var s subject
		err = tokens.Get(ctx, k.client(own), token).ExtractInto(&s)
		switch {
		case err == nil:
			return s, nil
		case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
			return subject{}, fmt.Errorf("%w: the token is not valid", ErrUnauthenticated)
		case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && rejected == "":
			rejected = own
		case gophercloud.ResponseCodeIs(err, http.StatusForbidden):
			return subject{}, fmt.Errorf("%w: user %s may not validate tokens: give it the role service", ErrUnavailable, k.service.Username)
		default:
			return subject{}, unavailable("validate a token", err)
		}
	}
}

// Fresh is the service user's own token, for what berth itself asks of other services. It is another one than
// that which somebody has just rejected.
func (k *Keystone) Fresh(ctx context.Context, rejected string) (string, error) {
	if rejected != "" {
		k.forget(rejected)
	}
	if own := k.current(); own != "" {
		return own, nil
	}
	v, err := k.once(ctx, "", k.login)
	if err != nil {
		return "", err
	}
	return v.(string), nil
}

// current is our own token, empty when it must be renewed.
func (k *Keystone) current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.now().Before(k.own.until) {
		return ""
	}
	return k.own.token
}

// login gets a token for the service user, unless that was done just before.
func (k *Keystone) login(ctx context.Context) (any, error) {
	if own := k.current(); own != "" {
		return own, nil
	}
	s := k.service
	result := tokens.Create(ctx, k.client(""), &tokens.AuthOptions{Username: s.Username, Password: s.Password, DomainName: s.UserDomain,
		Scope: tokens.Scope{ProjectName: s.Project, DomainName: s.ProjectDomain}})
	token, err := result.ExtractToken()
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized):
		return "", fmt.Errorf("%w: Keystone refuses user %s: check OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME", ErrUnavailable, s.Username)
	case err != nil:
		return "", unavailable("log in", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own = session{token: token.ID, until: token.ExpiresAt.Add(-renewal)}
	return token.ID, nil
}

// forget drops our token unless somebody has renewed it already.
func (k *Keystone) forget(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own.token == token {
		k.own = session{}
	}
}

func (k *Keystone) client(token string) *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{Endpoint: k.endpoint, Type: "identity",
		ProviderClient: &gophercloud.ProviderClient{HTTPClient: *k.http, TokenID: token}}
}

// unavailable keeps the body of an unexpected answer out of the error: it may be a page of HTML.
func unavailable(doing string, err error) error {
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		return fmt.Errorf("%w: %s: Keystone answers %d", ErrUnavailable, doing, code.Actual)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, doing, err)
}

// subject is what Keystone tells of a token.
type subject struct {
	ExpiresAt time.Time `json:"expires_at"`
	User      struct {
		ID string `json:"id"`
	} `json:"user"`
	Project struct {
		ID string `json:"id"`
	} `json:"project"`
	System map[string]bool `json:"system"`
	Roles  []struct {
		Name string `json:"name"`
	} `json:"roles"`
}

// caller leaves out the roles of a token that is scoped to a domain: berth owns nothing that belongs to one.
func (s subject) caller() Caller {
	c := Caller{User: s.User.ID, Project: s.Project.ID, System: s.System["all"]}
	if c.Project == "" && !c.System {
		return c
	}
	for _, role := range s.Roles {
		c.Roles = append(c.Roles, role.Name)
	}
	return c
}
