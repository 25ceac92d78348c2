// Package notify tells others what happened: Nova's external events, and webhooks. It delivers once and says what came of it;
// who keeps an event until it is delivered is decided elsewhere.
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
)

// ErrRefused means that they will not take what is sent, however often it is. Every other error is
// worth another try.
var ErrRejected = errors.New("it is refused for good")

// Event is one external event.
type Event struct {
	Server string // the server's UUID
	Name   string // network-vif-plugged …
	Status string // completed, failed; empty for events without one
	Tag    string // the port's UUID
}

// Config is how Nova or a webhook is reached.
type Config struct {
	URL     string // of the compute endpoint, or the webhook
	Token   string
	Timeout time.Duration // of one request; 0 means ten seconds
	// Fresh, if set, for Nova alone, gives the token of each request instead of Token. It is given the one that Nova has just
	// rejected, if any, and answers with another.
	TokenSource func(ctx context.Context, rejected string) (string, error)
}

const (
	defaultTimeout = 10 * time.Second
	maxAnswer      = 1 << 20
	maxHypervisors = 64 << 20 // some kilobytes each
)

// Nova sends external events. It is safe for concurrent use.
type Nova struct {
	base  string
	fresh func(ctx context.Context, rejected string) (string, error)
	http  *http.Client
}

// NewNova checks the configuration. It does not connect.
func NewNova(c Config) (*Nova, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the Nova URL is not of the form http://host:port/path")
	}
	if c.TokenSource == nil {
		c.TokenSource = func(context.Context, string) (string, error) { return c.Token, nil }
	}
	return &Nova{
		base:  strings.TrimRight(c.URL, "/"),
		fresh: c.TokenSource,
		http:  newClient(c.Timeout),
	}, nil
}

// newClient makes a client that follows nobody elsewhere. No time-out means the default.
func newClient(timeout time.Duration) *http.Client {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 20 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type wireEvent struct {
	Server string `json:"server_uuid"`
	Name   string `json:"name"`
	Status string `json:"status,omitempty"`
	Tag    string `json:"tag,omitempty"`
}

// Send delivers events in one request and returns Nova's code for each: 200 where it took the event, 404 where
// it does not know the server, which needs nothing more. A Nova that answers 404 to all of them knows none, if it says so
// in its own words: another 404 is of somebody who does not find Nova.
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
	status, answer, err := n.ask(ctx, http.MethodPost, "/os-server-external-events", body, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("send events to Nova: %w", err)
	}
	switch {
	case status == http.StatusOK, status == http.StatusMultiStatus:
		return codes(answer, len(events), http.StatusOK), nil
	case status == http.StatusNotFound && itemNotFound(answer):
		return codes(nil, len(events), http.StatusNotFound), nil
	case mendable(status):
		return nil, fmt.Errorf("send events to Nova: it answered %d", status)
	default:
		return nil, fmt.Errorf("%w: it answered %d", ErrRejected, status)
	}
}

// itemNotFound tells whether an answer says in Nova's words that something is not there.
func itemNotFound(answer []byte) bool {
	var told struct {
		Item *json.RawMessage `json:"itemNotFound"`
	}
	return json.Unmarshal(answer, &told) == nil && told.Item != nil
}

// mendable tells whether time or an operator can change Nova's mind.
func mendable(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return status < 400 || status >= 500
}

// Hypervisors tells by their names which hypervisors are up and enabled.
func (n *Nova) Hypervisors(ctx context.Context) (map[string]bool, error) {
	status, answer, err := n.ask(ctx, http.MethodGet, "/os-hypervisors/detail", nil, maxHypervisors)
	if err != nil {
		return nil, fmt.Errorf("ask Nova for its hypervisors: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("ask Nova for its hypervisors: it answered %d", status)
	}
	var told struct {
		Hypervisors []struct {
			Name   string `json:"hypervisor_hostname"`
			State  string `json:"state"`
			Status string `json:"status"`
		} `json:"hypervisors"`
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return nil, fmt.Errorf("hypervisors of Nova: %w", err)
	}
	up := make(map[string]bool, len(told.Hypervisors))
	for _, h := range told.Hypervisors {
		up[h.Name] = h.State == "up" && h.Status == "enabled"
	}
	return up, nil
}

// ask sends once more with another token if Nova rejects the first.
func (n *Nova) ask(ctx context.Context, method, path string, body []byte, most int64) (int, []byte, error) {
	token, err := n.fresh(ctx, "")
	if err != nil {
		return 0, nil, err
	}
	status, answer, err := n.try(ctx, method, path, body, token, most)
	if err != nil || status != http.StatusUnauthorized {
		return status, answer, err
	}
	other, err := n.fresh(ctx, token)
	if err != nil {
		return 0, nil, err
	}
	if other == token {
		return status, answer, nil
	}
	return n.try(ctx, method, path, body, other, most)
}

func (n *Nova) try(ctx context.Context, method, path string, body []byte, token string, most int64) (int, []byte, error) {
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
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // the status says enough where the body is cut off
	return resp.StatusCode, answer, nil
}

// codes reads the code of each event; those that the answer does not tell are the given one.
func codes(answer []byte, events, otherwise int) []int {
	var told struct {
		Events []struct {
			Code int `json:"code"`
		} `json:"events"`
	}
	all := make([]int, events)
	for i := range all {
		all[i] = otherwise
	}
	if json.Unmarshal(answer, &told) != nil || len(told.Events) != events {
		return all
	}
	for i, e := range told.Events {
		if e.Code != 0 {
			all[i] = e.Code
		}
	}
	return all
}
