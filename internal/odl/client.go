// Package odl is a client of OpenDaylight: it sends requests to the Neutron northbound API, reads the
// controller's operational data and watches its change events. A circuit breaker limits the requests to a
// controller that fails. The package journal decides what a response means for a journal entry.
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
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"berth/internal/safeurl"
	"berth/internal/text"
)

// Config configures a Client.
type Config struct {
	URL      string // URL of the Neutron northbound API, such as http://host:8080/controller/nb/v2/neutron
	User     string // user name; empty: no credentials are sent
	Password string
	Timeout  time.Duration // timeout of one request and its response; 0: ten seconds
	CAPEM    []byte        // certificate authorities; empty: the system's
	// Concurrency is the maximum number of requests in flight; requests that list objects are not counted; 0:
	// DefaultConcurrency.
	Concurrency int
	// ProbeInterval is how often an open circuit breaker admits one request, counted over all processes; 0:
	// one second.
	ProbeInterval time.Duration
	// SharedTimeout limits a call that reads or writes the state of the circuit breaker that all processes
	// share; 0: two seconds.
	SharedTimeout time.Duration
	// Wrap, if set, adds measurements to the transport of the client.
	Wrap func(http.RoundTripper) http.RoundTripper
}

const (
	defaultTimeout = 10 * time.Second
	// MaxObject is the maximum size of an object of the controller, in bytes.
	MaxObject = 16 << 20
	// maxDetail is the maximum number of characters of the description of a failure, which may quote a
	// response.
	maxDetail = 500
	// idleTimeout is how long the client keeps an idle connection. idleTimeout is shorter than the
	// controller's timeout, so that the client closes the connection first.
	idleTimeout = 20 * time.Second
)

// Failure is the reason why a request got no complete response. Failure is empty if the request got a
// complete response.
type Failure string

// The kinds of failures of a request.
const (
	FailureUnreachable Failure = "unreachable" // no connection: nothing was sent
	FailureTLS         Failure = "tls"         // the TLS handshake failed: nothing was sent
	FailureTimeout     Failure = "timeout"     // sent, and no response came in time
	// sent, and the connection ended before the response was complete
	FailureReset Failure = "reset"
	// not sent because the circuit breaker is open; see RetryAfter
	FailureBreakerOpen Failure = "open"
	// not sent because too many requests are in flight; see RetryAfter
	FailureBusy Failure = "busy"
	// not sent because no HTTP request can be made of the arguments
	FailureInvalidRequest Failure = "unusable"
)

// Request is a request to the controller.
type Request struct {
	Method string
	Path   string // below the URL of the northbound API
	Body   []byte
	// MaxAnswer is the maximum number of bytes of the response body that the client keeps. The client ignores
	// the rest of the body.
	MaxAnswer int64
}

// Response is the outcome of a request: the controller's response, or a failure.
type Response struct {
	Status     int
	Body       []byte
	Failure    Failure
	Detail     string        // description of the failure
	RetryAfter time.Duration // how long the controller or the circuit breaker asks to wait
	Location   string        // the Location header
}

// Client sends requests to one OpenDaylight controller. A Client is safe for concurrent use.
type Client struct {
	base    string // URL of the northbound API
	root    string // scheme and host
	host    string
	secure  bool
	config  Config
	http    *http.Client
	breaker *breaker
	slots   slots
}

// New checks the configuration and returns a client for it. New does not connect to the controller.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		// the parser's error may contain a password
		return nil, errors.New("controller URL: cannot be parsed as a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("controller URL %q: want http://host:port/path", c.URL)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("controller URL %q: must not contain a query, a fragment or credentials",
			safeurl.Redact(c.URL))
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Concurrency <= 0 {
		c.Concurrency = DefaultConcurrency
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConns:        max(256, c.Concurrency),
		MaxIdleConnsPerHost: max(256, c.Concurrency),
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: c.Timeout,

		MaxResponseHeaderBytes: safeurl.MaxHeader,
	}
	if len(c.CAPEM) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.CAPEM) {
			return nil, errors.New(
				"certificate authorities of the controller: the PEM data contains no certificate",
			)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	jar, err := newCookieJar()
	if err != nil {
		return nil, err
	}
	var trips http.RoundTripper = transport
	if c.Wrap != nil {
		trips = c.Wrap(transport)
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		base:    strings.TrimRight(c.URL, "/"),
		root:    u.Scheme + "://" + u.Host,
		host:    u.Hostname(),
		secure:  u.Scheme == "https",
		config:  c,
		http:    &http.Client{Transport: trips, Jar: jar, CheckRedirect: refuse},
		breaker: newBreaker(c, time.Now, nil),
		slots:   make(slots, c.Concurrency),
	}, nil
}

// BreakerOpen reports whether the client's circuit breaker is open.
func (c *Client) BreakerOpen() bool { return c.breaker.isOpen() }

// ShareBreaker makes the client's circuit breaker use the state that all processes share. Call ShareBreaker
// before the first request.
func (c *Client) ShareBreaker(others SharedBreaker) { c.breaker.shared = others }

// Readable returns true, because objects can be read from an OpenDaylight controller.
func (c *Client) Readable() bool { return true }

// Send sends one request without retries. If the request fails on the way to the controller or back, Send
// returns a Response with a Failure. Send returns an error only if ctx ended; the controller may or may not
// have executed the request.
func (c *Client) Send(ctx context.Context, r Request) (Response, error) {
	ok, err := c.slots.acquire(ctx)
	switch {
	case err != nil:
		return Response{}, fmt.Errorf("%s %s: wait until fewer requests are in flight: %w", r.Method, r.Path, err)
	case !ok:
		return c.slots.busyResponse(), nil
	}
	defer c.slots.release()
	if wait, last := c.breaker.admit(ctx); wait > 0 {
		return breakerOpenResponse(wait, last), nil
	}
	a := c.send(ctx, c.base, r)
	if err := ctx.Err(); err != nil && a.Failure != "" {
		return Response{}, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	c.breaker.report(ctx, controllerFailure(a))
	return a, nil
}

// BreakerWait returns how long the caller must wait because the circuit breaker is open, and why it is open.
// BreakerWait returns 0 if a request may be sent.
func (c *Client) BreakerWait() (wait time.Duration, why string) {
	if wait, last := c.breaker.wait(); wait > 0 {
		return wait, breakerOpenResponse(wait, last).Detail
	}
	return 0, ""
}

// breakerOpenResponse returns the Response for a request that the open circuit breaker rejects.
func breakerOpenResponse(wait time.Duration, last string) Response {
	return Response{
		Failure:    FailureBreakerOpen,
		RetryAfter: wait,
		Detail:     "the circuit breaker is open after " + last,
	}
}

// controllerFailure describes a failure of the whole controller. The circuit breaker counts failures of the
// whole controller. controllerFailure returns an empty string for all other responses.
func controllerFailure(a Response) string {
	switch {
	case a.Failure == FailureInvalidRequest:
		return ""
	case a.Failure != "":
		return string(a.Failure) + ": " + a.Detail
	case a.Status >= 500:
		return fmt.Sprintf("status %d", a.Status)
	}
	return ""
}

// send sends a request whose path is below the given base.
func (c *Client) send(ctx context.Context, base string, given Request) Response {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var p requestProgress
	r, err := c.newRequest(p.trace(ctx), given.Method, base+given.Path, given.Body)
	if err != nil {
		return Response{Failure: FailureInvalidRequest, Detail: err.Error()}
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return p.failureResponse(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 100 {
		return p.failureResponse(ctx, fmt.Errorf("invalid HTTP status %d", resp.StatusCode))
	}
	a := Response{
		Status:     resp.StatusCode,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		Location:   resp.Header.Get("Location"),
	}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, given.MaxAnswer))
	if err != nil && given.Method == http.MethodGet {
		return p.failureResponse(ctx, err)
	}
	if err != nil {
		// the status line of a write is enough; a truncated body does not make the write a failure
		a.Body = nil
	}
	return a
}

// newRequest returns an HTTP request with the credentials and the headers that the controller needs.
func (c *Client) newRequest(ctx context.Context, method, target string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err == nil {
		err = safeurl.CheckPath(r.URL)
	}
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

// requestProgress records how far a request has got: to the TLS handshake, or to a complete connection.
type requestProgress struct{ tlsStarted, connected atomic.Bool }

func (p *requestProgress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { p.tlsStarted.Store(true) },
		GotConn:           func(httptrace.GotConnInfo) { p.connected.Store(true) },
	})
}

// failureResponse returns a Response for a failed request. The progress of the request decides the kind of
// failure, that is, whether the controller may have received the request.
func (p *requestProgress) failureResponse(ctx context.Context, err error) Response {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	a := Response{Detail: text.OneLine(err.Error(), maxDetail)}
	switch {
	case p.connected.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.Failure = FailureTimeout
	case p.connected.Load():
		a.Failure = FailureReset
	case p.tlsStarted.Load():
		a.Failure = FailureTLS
	default:
		a.Failure = FailureUnreachable
	}
	return a
}

// retryAfter parses a Retry-After header, which contains a number of seconds or a date.
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
