package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// EnforcementConfig is how the service is reached that decides on leases.
type EnforcementConfig struct {
	URL      string // below it are check-create, check-update and on-end
	Token    string
	AuthURL  string // Keystone, as the service is told
	Region   string
	FailOpen bool // what it does not decide is allowed
	Timeout  time.Duration
}

// Enforcement asks a service of the operator whether leases may be as somebody wants them. It is safe for concurrent use.
type Enforcement struct {
	EnforcementConfig
	http *http.Client
}

// NewEnforcement checks the configuration. It does not connect.
func NewEnforcement(c EnforcementConfig) (*Enforcement, error) {
	if _, err := NewWebhook(Config{URL: c.URL}); err != nil {
		return nil, err
	}
	c.URL = strings.TrimRight(c.URL, "/")
	return &Enforcement{EnforcementConfig: c, http: newClient(c.Timeout)}, nil
}

// Question is what the service is asked, or told.
type EnforcementRequest struct {
	User, Project string
	Lease         any
	CurrentLease  any // what it is before a change
}

// Ask returns why the service refuses; nothing if it does not. What says neither is taken as configured.
func (e *Enforcement) Check(ctx context.Context, check string, q EnforcementRequest) (refusal string) {
	const generic = "The external service that decides on leases did not allow it."
	status, answer, err := e.post(ctx, check, q)
	var said struct{ Message string }
	switch {
	case err == nil && status == http.StatusNoContent:
		return ""
	case err == nil && status == http.StatusForbidden:
		if json.Unmarshal(answer, &said) == nil && said.Message != "" {
			return said.Message
		}
		return generic
	}
	slog.WarnContext(ctx, "the external service does not decide on a lease", "check", check, "status", status, "error", err, "open", e.FailOpen)
	if e.FailOpen {
		return ""
	}
	return generic
}

// Tell informs the service. What it answers does not matter.
func (e *Enforcement) Notify(ctx context.Context, event string, q EnforcementRequest) {
	if status, _, err := e.post(ctx, event, q); err != nil || status/100 != 2 {
		slog.WarnContext(ctx, "the external service does not hear of a lease", "event", event, "status", status, "error", err)
	}
}

func (e *Enforcement) post(ctx context.Context, path string, q EnforcementRequest) (int, []byte, error) {
	told := map[string]any{"lease": q.Lease, "context": map[string]string{"user_id": q.User, "project_id": q.Project,
		"auth_url": e.AuthURL, "region_name": e.Region}}
	if q.CurrentLease != nil {
		told["current_lease"] = q.CurrentLease
	}
	body, err := json.Marshal(told)
	if err != nil {
		return 0, nil, fmt.Errorf("ask about a lease: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("ask about a lease: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "berth")
	if e.Token != "" {
		r.Header.Set("X-Auth-Token", e.Token)
	}
	resp, err := e.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("ask about a lease: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}
