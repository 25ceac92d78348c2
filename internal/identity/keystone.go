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
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/singleflight"

	"berth/internal/safeurl"
)

const (
	// validFor is how long a valid token is cached, unless it expires earlier. A token that is revoked may
	// still be accepted until validFor has passed.
	validFor = 5 * time.Minute
	// invalidFor is how long an invalid token is cached.
	invalidFor = 10 * time.Second
	// keystoneTimeout is how long a request waits for Keystone before the client gets the status 503.
	keystoneTimeout = 10 * time.Second
	// renewBefore is how long before the expiry of the service user's token berth renews this token.
	renewBefore = time.Minute
	// renewPause is the shortest time between two renewals because a service has rejected the service user's
	// token.
	renewPause = 5 * time.Second
	// maxToken is the maximum length of a token, in bytes. The tokens that Keystone issues are shorter than
	// maxToken.
	maxToken = 4096
	// maxAnswer is the largest answer of Keystone, in bytes. A token with a catalog of many services has less
	// than 100 kB.
	maxAnswer = 1 << 20
	// maxCaller is the maximum size of the user, the project and the roles of a token together, in bytes. It
	// bounds the memory of the cache, and is larger than what Keystone stores for a user.
	maxCaller = 16 << 10
	// maxVerdicts is the maximum number of entries of the cache of valid tokens, and of the cache of invalid
	// tokens. The cache of invalid tokens needs a limit because any client can fill it.
	maxVerdicts = 10_000
	// maxConns is the maximum number of connections to Keystone. Each running validation and each running
	// login of a user needs one, and so do a login of the service user and a check.
	maxConns = maxRunning + maxRunningLogins + 2
)

// Service contains the settings of berth's service user in Keystone. With the token of the service user,
// berth validates the tokens of requests.
type Service struct {
	AuthURL                   string // with or without /v3
	Username, Password        string
	Project                   string
	UserDomain, ProjectDomain string // domain names
	// certificate authorities trusted in addition to the system's; empty for none
	CAFile string
	// Wrap, if set, adds measurements to the transport of the client.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Keystone is an Authenticator that lets the Keystone service validate tokens, and caches the results. It
// ignores the headers of a request that name an identity, such as X-Project-Id.
type Keystone struct {
	service    Service
	endpoint   string // ends in /v3/
	http       *http.Client
	timeout    time.Duration // limits a call that requests share
	now        func() time.Time
	valid      *verdicts
	invalid    *verdicts
	queue      *validationQueue   // of tokens
	clients    *addressLimit      // of tokens; refused passwords count too
	loginQueue *validationQueue   // of logins of users
	loginLimit *addressLimit      // of logins of users
	flights    singleflight.Group // one login and one check at a time
	breaker    *gobreaker.CircuitBreaker[any]

	mu        sync.Mutex
	own       session
	renewAt   time.Time // when a rejected token may be renewed; the zero time before the first one
	checked   checkResult
	validated time.Time // when Keystone last answered a validation
	retryAt   time.Time // when Keystone wants to get the next request; the zero time if Keystone has not said
}

// session is a token of the service user, with the time until which berth uses the token.
type session struct {
	token string
	until time.Time
}

// NewKeystone checks the settings and does not connect to Keystone, so that berth starts while Keystone is
// down.
func NewKeystone(s Service) (*Keystone, error) {
	if s.AuthURL == "" || s.Username == "" || s.Password == "" || s.Project == "" {
		return nil, errors.New(
			"keystone: OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME of berth's service user are needed",
		)
	}
	provider, err := openstack.NewClient(s.AuthURL)
	if err != nil {
		return nil, fmt.Errorf("keystone: OS_AUTH_URL: %w", err)
	}
	client, err := httpClient(s.CAFile)
	if err != nil {
		return nil, err
	}
	if s.Wrap != nil {
		client.Transport = s.Wrap(client.Transport)
	}
	client.Transport = safeurl.Transport(client.Transport, maxAnswer)
	return &Keystone{
		service:    s,
		endpoint:   provider.IdentityBase + "v3/",
		http:       client,
		timeout:    keystoneTimeout,
		now:        time.Now,
		valid:      newVerdicts(maxVerdicts),
		invalid:    newVerdicts(maxVerdicts),
		queue:      newValidationQueue(maxRunning, maxQueued),
		clients:    newAddressLimit(maxPerAddress, maxVerdicts),
		loginQueue: newLoginQueue(),
		loginLimit: newLoginLimit(),
		breaker:    newBreaker(probeInterval),
	}, nil
}

// httpClient returns an HTTP client that follows no redirects, because a redirect could send tokens to
// another host.
func httpClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = maxConns, maxConns
	transport.MaxResponseHeaderBytes = safeurl.MaxHeader
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

// Challenge returns the value of the header WWW-Authenticate for a response with the status 401: the address
// of Keystone.
func (k *Keystone) Challenge() string { return fmt.Sprintf("Keystone uri=%q", k.service.AuthURL) }

// Authenticate returns the caller to whom the request's X-Auth-Token belongs.
func (k *Keystone) Authenticate(r *http.Request) (Caller, error) {
	token := r.Header.Get("X-Auth-Token")
	if err := checkFormat(token); err != nil {
		return Caller{}, err
	}
	key := sha256.Sum256([]byte(token))
	if c, known, err := k.cached(key); known {
		return c, err
	}
	client := AddressOf(r.Context())
	return k.queue.await(r.Context(), key, validationTask{
		admit:    func() error { return k.clients.begin(client, k.now()) },
		validate: func(ctx context.Context) (Caller, error) { return k.validateAndCache(ctx, token, key) },
		ended:    func(err error) { k.clients.end(client, k.now(), errors.Is(err, ErrUnauthenticated)) },
	})
}

// Refused returns the number of tokens and logins that were refused without a request to Keystone, because
// too many of their client's address are invalid or wait for Keystone, or because the address has too many
// logins.
func (k *Keystone) Refused() uint64 { return k.clients.count() + k.loginLimit.count() }

// cached returns the cached verdict on a token: the caller, or an error if the token is invalid. The result
// `known` is false if the cache has no verdict.
func (k *Keystone) cached(key [sha256.Size]byte) (c Caller, known bool, err error) {
	now := k.now()
	if c, ok := k.valid.find(key, now); ok {
		return c, true, nil
	}
	if _, ok := k.invalid.find(key, now); ok {
		return Caller{}, true, fmt.Errorf("%w: the token is not valid", ErrUnauthenticated)
	}
	return Caller{}, false, nil
}

// checkFormat rejects text that cannot be a token, without a request to Keystone.
func checkFormat(token string) error {
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

// shareCall makes one call to Keystone for all concurrent requests with the same key. The shared call
// continues when the request that started it is cancelled, because other requests may wait for the result.
func (k *Keystone) shareCall(
	ctx context.Context,
	key string,
	call func(context.Context) (any, error),
) (any, error) {
	answer := k.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.timeout)
		defer cancel()
		return recovered(ctx, "a login or a check", call)
	})
	select {
	case a := <-answer:
		return a.Val, a.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

// validateAndCache validates a token with Keystone and caches the verdict. validateAndCache first looks for
// the token in the cache, because another request may just have stored the verdict.
func (k *Keystone) validateAndCache(
	ctx context.Context,
	token string,
	key [sha256.Size]byte,
) (Caller, error) {
	if c, known, err := k.cached(key); known {
		return c, err
	}
	validated, err := k.validate(ctx, token)
	if err != nil {
		if errors.Is(err, ErrUnauthenticated) {
			k.invalid.keep(key, Caller{}, k.now().Add(invalidFor))
		}
		return Caller{}, err
	}
	c, now := validated.caller(), k.now()
	until := now.Add(validFor)
	if validated.ExpiresAt.Before(until) {
		until = validated.ExpiresAt
	}
	if !now.Before(until) {
		k.invalid.keep(key, Caller{}, now.Add(invalidFor))
		return Caller{}, fmt.Errorf("%w: the token has expired", ErrUnauthenticated)
	}
	k.valid.keep(key, c, until)
	return c, nil
}

// validate lets Keystone validate a token, with the token of the service user. If Keystone rejects the
// service user's token, validate renews the service user's token once and tries again.
func (k *Keystone) validate(ctx context.Context, token string) (subject, error) {
	for rejected := ""; ; {
		own, err := k.Fresh(ctx, rejected)
		if err != nil {
			return subject{}, err
		}
		var s subject
		err = k.request(func() error { return tokens.Get(ctx, k.client(own), token).ExtractInto(&s) })
		switch {
		case err == nil && (s.User.ID == "" || s.ExpiresAt.IsZero()):
			return subject{}, fmt.Errorf(
				"%w: validate a token: the answer describes no user or no expiry, so it does not come from Keystone: check OS_AUTH_URL",
				ErrUnavailable,
			)
		case err == nil && s.size() > maxCaller:
			return subject{}, fmt.Errorf(
				"%w: validate a token: the user, the project and the roles in the answer have more than %d bytes",
				ErrUnavailable, maxCaller,
			)
		case err == nil:
			k.noteValidation()
			return s, nil
		case isTokenMissing(err):
			k.noteValidation()
			return subject{}, fmt.Errorf("%w: the token is not valid", ErrUnauthenticated)
		case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && rejected == "":
			rejected = own
		case gophercloud.ResponseCodeIs(err, http.StatusForbidden):
			return subject{}, fmt.Errorf(
				"%w: user %s may not validate tokens: give it the role service",
				ErrUnavailable,
				k.service.Username,
			)
		default:
			return subject{}, k.unavailable("validate a token", err)
		}
	}
}

// Fresh returns a valid token of the service user, for requests to other OpenStack services. The parameter
// `rejected` is a token that a service has rejected, or ""; Fresh never returns the rejected token.
func (k *Keystone) Fresh(ctx context.Context, rejected string) (string, error) {
	if err := k.forget(rejected); err != nil {
		return "", err
	}
	if own := k.current(); own != "" {
		return own, nil
	}
	v, err := k.shareCall(ctx, "", k.login)
	if err != nil {
		return "", err
	}
	return v.(string), nil
}

// current returns the cached token of the service user, or "" if the token must be renewed.
func (k *Keystone) current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.now().Before(k.own.until) {
		return ""
	}
	return k.own.token
}

// login gets a new token of the service user from Keystone, unless a concurrent request has just got one.
func (k *Keystone) login(ctx context.Context) (any, error) {
	if own := k.current(); own != "" {
		return own, nil
	}
	s := k.service
	var token *tokens.Token
	err := k.request(func() (err error) {
		token, err = k.createToken(ctx, Login{
			User:          s.Username,
			UserDomain:    s.UserDomain,
			Password:      s.Password,
			Project:       s.Project,
			ProjectDomain: s.ProjectDomain,
		})
		return err
	})
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized):
		return "", fmt.Errorf(
			"%w: Keystone refuses user %s: check OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME",
			ErrUnavailable,
			s.Username,
		)
	case err != nil:
		return "", k.unavailable("log in", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own = session{token: token.ID, until: token.ExpiresAt.Add(-renewBefore)}
	return token.ID, nil
}

// forget deletes the cached token of the service user if a service has rejected it. If the last rejected
// token was renewed less than renewPause ago, forget keeps the token and returns an error: a service that
// rejects every token would otherwise make berth log in again and again, and would delay the validations,
// which need the token.
func (k *Keystone) forget(rejected string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if rejected == "" || k.own.token != rejected {
		return nil
	}
	now := k.now()
	if now.Before(k.renewAt) {
		return fmt.Errorf("%w: a service rejects the token that Keystone has just issued to user %s",
			ErrUnavailable, k.service.Username)
	}
	k.own, k.renewAt = session{}, now.Add(renewPause)
	return nil
}

func (k *Keystone) client(token string) *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{Endpoint: k.endpoint, Type: "identity",
		ProviderClient: &gophercloud.ProviderClient{HTTPClient: *k.http, TokenID: token}}
}

// subject is Keystone's JSON description of a validated token.
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

// size returns the size of the names that the caller of the subject keeps, in bytes.
func (s subject) size() int {
	bytes := len(s.User.ID) + len(s.Project.ID)
	for _, role := range s.Roles {
		bytes += len(role.Name) + 16 // with the header of the text
	}
	return bytes
}

// caller returns the Caller to whom the token belongs. caller drops the roles of a domain-scoped token,
// because no object in berth belongs to a domain.
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
