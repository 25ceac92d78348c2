// Package odl speaks to an OpenDaylight controller's Neutron northbound: it sends one request and says what
// came of it, and spares a controller that is in trouble. It knows no journal: what an answer means for an
// entry is decided elsewhere.
package odl

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Config is how a controller is reached.
type Config struct {
	URL      string // of the northbound, http://host:8080/controller/nb/v2/neutron
	User     string // empty: no credentials are sent
	Password string
	Timeout  time.Duration // of one request, its answer included; 0 means ten seconds
	CA       []byte        // PEM; empty: the system's
}

const (
	defaultTimeout = 10 * time.Second
	// maxAnswer bounds what is kept of an answer.
	maxAnswer = 16 << 20
	// idle is shorter than the controller's own patience with unused connections, so that we close them first.
	idle = 20 * time.Second
)

// Trouble is why there is no answer. The empty Trouble means that there is one.
type Failure string

// The troubles.
const (
	FailureUnreachable    Failure = "unreachable" // not even connected: nothing was sent
	FailureTLS            Failure = "tls"         // no trusted connection: nothing was sent
	FailureTimeout        Failure = "timeout"     // sent, and no answer came in time
	FailureReset          Failure = "reset"       // sent, and the connection broke before the answer was whole
	FailureBreakerOpen    Failure = "open"        // not sent: too many requests failed just now; see RetryAfter
	FailureInvalidRequest Failure = "unusable"    // the request could not be made at all
)

// Answer is what came of a request.
type Response struct {
	Status     int
	Body       []byte
	Failure    Failure
	Detail     string        // the trouble in words
	RetryAfter time.Duration // the controller, or the breaker before it, asks for so much patience
	Location   string        // the header of that name
}

// Client sends requests to one controller. It is safe for concurrent use.
type Client struct {
	base    string // of the northbound
	root    string // scheme and host
	host    string
	secure  bool
	config  Config
	http    *http.Client
	breaker *breaker
}

// New checks the configuration. It does not connect.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return nil, errors.New("controller URL: not a URL") // the parser's words would quote a password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("controller URL %q: want http://host:port/path", c.URL)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("controller URL %q: want no query, fragment or credentials in it", u.Redacted())
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     idle,
		TLSHandshakeTimeout: c.Timeout,
	}
	if len(c.CA) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("controller CA: no certificate in the PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	jar, err := cookiejar.New(nil) // the controller would otherwise open a session for every request
	if err != nil {
		return nil, err
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		base:    strings.TrimRight(c.URL, "/"),
		root:    u.Scheme + "://" + u.Host,
		host:    u.Hostname(),
		secure:  u.Scheme == "https",
		config:  c,
		http:    &http.Client{Transport: transport, Jar: jar, CheckRedirect: refuse},
		breaker: newBreaker(time.Now, nil),
	}, nil
}

// Resting tells whether the controller is left alone because requests failed.
func (c *Client) BreakerOpen() bool { return c.breaker.open() }

// Share lets the client heed what the other processes know of the controller. It is called before the client is used.
func (c *Client) ShareBreaker(others SharedBreaker) { c.breaker.others = others }

// Shows tells that one can look at what the controller has.
func (c *Client) Readable() bool { return true }

// Send sends one request, once. Everything that happens between here and the controller is an Answer; an error
// means that ctx ended, and that nobody knows what became of the request.
func (c *Client) Send(ctx context.Context, method, path string, body []byte) (Response, error) {
	if wait, last := c.breaker.admit(ctx); wait > 0 {
		return resting(wait, last), nil
	}
	a := c.send(ctx, method, c.base+path, body)
	if err := ctx.Err(); err != nil && a.Failure != "" {
		return Response{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	c.breaker.report(ctx, sick(a))
	return a, nil
}

// Rests is for how long whoever asks shall leave the controller alone, and why; zero if a request may go out.
func (c *Client) BreakerWait() (wait time.Duration, why string) {
	if wait, last := c.breaker.rests(); wait > 0 {
		return wait, resting(wait, last).Detail
	}
	return 0, ""
}

// resting is the answer of an open breaker.
func resting(wait time.Duration, last string) Response {
	return Response{Failure: FailureBreakerOpen, RetryAfter: wait, Detail: "the controller is left alone for a moment, after " + last}
}

// sick says what is wrong with the controller as a whole, if anything is.
func sick(a Response) string {
	switch {
	case a.Failure == FailureInvalidRequest:
		return ""
	case a.Failure != "":
		return string(a.Failure) + ": " + a.Detail
	case a.Status >= 500:
		return fmt.Sprintf("an answer %d", a.Status)
	}
	return ""
}

func (c *Client) send(ctx context.Context, method, at string, body []byte) Response {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var p progress
	r, err := c.request(p.trace(ctx), method, at, body)
	if err != nil {
		return Response{Failure: FailureInvalidRequest, Detail: err.Error()}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return p.trouble(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 100 {
		return p.trouble(ctx, fmt.Errorf("an answer with status %d, which is none", resp.StatusCode))
	}
	a := Response{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()), Location: resp.Header.Get("Location")}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && method == http.MethodGet {
		return p.trouble(ctx, err)
	}
	if err != nil {
		a.Body = nil // the status line of a write has said it all; a body that is cut off takes nothing back
	}
	return a
}

// request is one to the controller, with our credentials.
func (c *Client) request(ctx context.Context, method, at string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "berth")
	if c.config.User != "" {
		r.SetBasicAuth(c.config.User, c.config.Password)
	}
	return r, nil
}

// progress is how far a request came.
type progress struct{ handshake, connected atomic.Bool }

func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { p.handshake.Store(true) },
		GotConn:           func(httptrace.GotConnInfo) { p.connected.Store(true) },
	})
}

// trouble tells by the request's progress whether the controller can have seen it.
func (p *progress) trouble(ctx context.Context, err error) Response {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	a := Response{Detail: err.Error()}
	switch {
	case p.connected.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.Failure = FailureTimeout
	case p.connected.Load():
		a.Failure = FailureReset
	case p.handshake.Load():
		a.Failure = FailureTLS
	default:
		a.Failure = FailureUnreachable
	}
	return a
}

// retryAfter reads the header of that name, seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longest)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}
