// Package notify sends notifications to other services: external events to Nova, lease notifications to a
// webhook, and checks to an enforcement service. A call to package notify sends a message once and returns
// the outcome. The callers store the messages and, after an error, call package notify again.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/safeurl"
)

// ErrRejected means that the receiver rejects the request permanently. After any error other than
// ErrRejected, the caller can retry.
var ErrRejected = errors.New("rejected permanently")

// ErrTooLarge means that the receiver rejects the request because of its size. ErrTooLarge wraps ErrRejected.
var ErrTooLarge = fmt.Errorf("%w: the request is too large", ErrRejected)

// Event is an external event of Nova's API os-server-external-events.
type Event struct {
	Server  string // the server's UUID
	Name    string // for example network-vif-plugged
	Status  string // completed or failed; empty for events without a status
	Tag     string // the port's UUID
	Project string // of the port; Nova does not get it
}

// Config configures a client of Nova or a client of a webhook.
type Config struct {
	URL     string // URL of the compute endpoint, or of the webhook
	Token   string
	Timeout time.Duration // time limit of one request; 0 means ten seconds
	// TokenSource, which only the client of Nova uses, returns the token of a request in place of Token. If
	// Nova has just rejected a token, the parameter `rejected` is the rejected token, and TokenSource returns
	// another one; otherwise `rejected` is empty.
	TokenSource func(ctx context.Context, rejected string) (string, error)
	// Wrap, if set, adds measurements to the transport of the client.
	Wrap func(http.RoundTripper) http.RoundTripper
}

const (
	defaultTimeout = 10 * time.Second
	maxBody        = 1 << 20
)

// Nova sends external events. Nova is safe for concurrent use.
type Nova struct {
	base        string
	tokenSource func(ctx context.Context, rejected string) (string, error)
	http        *http.Client
}

// NewNova checks the configuration and returns the client of Nova. NewNova does not connect to Nova.
func NewNova(c Config) (*Nova, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, errors.New("the Nova URL is not of the form http://host:port/path")
	}
	if c.TokenSource == nil {
		c.TokenSource = func(context.Context, string) (string, error) { return c.Token, nil }
	}
	return &Nova{
		base:        strings.TrimRight(c.URL, "/"),
		tokenSource: c.TokenSource,
		http:        newClient(c.Timeout, c.Wrap),
	}, nil
}

// newClient returns an HTTP client that does not follow redirects. If `timeout` is 0 or negative, the client
// uses defaultTimeout.
func newClient(timeout time.Duration, wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return safeurl.Client(timeout, wrap, maxBody)
}

type wireEvent struct {
	Server  string `json:"server_uuid"`
	Name    string `json:"name"`
	Status  string `json:"status,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Project string `json:"-"`
}

// Send sends events in one request and returns Nova's code for each event, for example 200 if Nova accepted
// the event, or 404 if Nova does not know the server. If Nova answers 404 to the whole request with Nova's
// error body, Send returns 404 for each event; any other 404 comes from a proxy or a wrong URL, and Send
// returns an error.
func (n *Nova) Send(ctx context.Context, events []Event) ([]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	wire := make([]wireEvent, len(events))
	for i, e := range events {
		wire[i] = wireEvent(e)
	}
	body, err := json.Marshal(map[string]any{"events": wire})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRejected, err)
	}
	status, answer, err := n.request(ctx, http.MethodPost, "/os-server-external-events", body)
	if err != nil {
		return nil, fmt.Errorf("send events to Nova: %w", err)
	}
	switch {
	case status == http.StatusOK, status == http.StatusMultiStatus:
		return eventCodes(answer, len(events), http.StatusOK), nil
	case status == http.StatusNotFound && isItemNotFound(answer):
		return eventCodes(nil, len(events), http.StatusNotFound), nil
	case isTransient(status):
		return nil, fmt.Errorf("send events to Nova: status %d", status)
	case status == http.StatusRequestEntityTooLarge:
		return nil, fmt.Errorf("%w: status %d", ErrTooLarge, status)
	default:
		return nil, fmt.Errorf("%w: status %d", ErrRejected, status)
	}
}

// isItemNotFound reports whether a body is Nova's error itemNotFound.
func isItemNotFound(answer []byte) bool {
	var decoded struct {
		Item *json.RawMessage `json:"itemNotFound"`
	}
	return json.Unmarshal(answer, &decoded) == nil && decoded.Item != nil
}

// isTransient reports whether a request that failed with the given HTTP status can succeed later, by itself
// or after an operator has corrected something.
func isTransient(status int) bool {
	switch status {
	case http.StatusUnauthorized,
		http.StatusForbidden,
		http.StatusNotFound,
		http.StatusRequestTimeout,
		http.StatusTooManyRequests:
		return true
	}
	return status < 400 || status >= 500
}

// request sends a request. If Nova rejects the token, the method request gets another token and sends the
// HTTP request once more.
func (n *Nova) request(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	token, err := n.tokenSource(ctx, "")
	if err != nil {
		return 0, nil, err
	}
	status, answer, err := n.requestOnce(ctx, method, path, body, token)
	if err != nil || status != http.StatusUnauthorized {
		return status, answer, err
	}
	other, err := n.tokenSource(ctx, token)
	if err != nil {
		return 0, nil, err
	}
	if other == token {
		return status, answer, nil
	}
	return n.requestOnce(ctx, method, path, body, other)
}

func (n *Nova) requestOnce(
	ctx context.Context,
	method, path string,
	body []byte,
	token string,
) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, n.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "berth")
	r.Header.Set("X-OpenStack-Nova-API-Version", "2.1")
	r.Header.Set("X-OpenStack-Request-ID", "req-"+uuid.NewString())
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	resp, err := n.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	// the status is enough, so a truncated body is no error
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, answer, nil
}

// eventCodes reads the code of each event. For an event without a code, eventCodes returns defaultCode.
func eventCodes(answer []byte, events, defaultCode int) []int {
	var decoded struct {
		Events []struct {
			Code int `json:"code"`
		} `json:"events"`
	}
	all := make([]int, events)
	for i := range all {
		all[i] = defaultCode
	}
	if json.Unmarshal(answer, &decoded) != nil || len(decoded.Events) != events {
		return all
	}
	for i, e := range decoded.Events {
		if e.Code != 0 {
			all[i] = e.Code
		}
	}
	return all
}
