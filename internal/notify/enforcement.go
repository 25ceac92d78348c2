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

// EnforcementConfig configures the external service that allows or refuses leases (Blazar's
// ExternalServiceFilter).
type EnforcementConfig struct {
	URL      string // the paths check-create, check-update and on-end are below this URL
	Token    string
	AuthURL  string // Keystone's URL; each request contains it in the object `context`
	Region   string
	FailOpen bool // allow leases when the service does not give a valid answer
	Timeout  time.Duration
	// Wrap, if set, adds measurements to the transport of the client.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Enforcement asks an external service whether a lease is allowed. Enforcement is safe for concurrent use.
type Enforcement struct {
	EnforcementConfig
	http *http.Client
}

// NewEnforcement checks the configuration and returns the client of the enforcement service. NewEnforcement
// does not connect to the service.
func NewEnforcement(c EnforcementConfig) (*Enforcement, error) {
	if _, err := NewWebhook(Config{URL: c.URL}); err != nil {
		return nil, err
	}
	c.URL = strings.TrimRight(c.URL, "/")
	return &Enforcement{EnforcementConfig: c, http: newClient(c.Timeout, c.Wrap)}, nil
}

// EnforcementRequest is the content of a request to the enforcement service.
type EnforcementRequest struct {
	User, Project string
	Lease         any
	// the lease before the update; nil if the request is about the creation or the end of a lease
	CurrentLease any
}

// Check asks the enforcement service whether a lease is allowed. Check returns the reason why the service
// refuses the lease, or an empty string if the lease is allowed. If the enforcement service fails, the lease
// is allowed only if FailOpen is set.
func (e *Enforcement) Check(ctx context.Context, check string, req EnforcementRequest) (refusal string) {
	const generic = "The external service that decides on leases did not allow it."
	status, answer, err := e.post(ctx, check, req)
	var decision struct{ Message string }
	switch {
	case err == nil && status == http.StatusNoContent:
		return ""
	case err == nil && status == http.StatusForbidden:
		if json.Unmarshal(answer, &decision) == nil && decision.Message != "" {
			return decision.Message
		}
		return generic
	}
	slog.WarnContext(ctx, "enforcement service returned no decision",
		"check", check, "status", status, "error", err, "fail_open", e.FailOpen)
	if e.FailOpen {
		return ""
	}
	return generic
}

// Notify sends an event to the enforcement service. Notify returns no error, but logs a failure.
func (e *Enforcement) Notify(ctx context.Context, event string, req EnforcementRequest) {
	if status, _, err := e.post(ctx, event, req); err != nil || status/100 != 2 {
		slog.WarnContext(ctx, "enforcement service was not notified",
			"event", event, "status", status, "error", err)
	}
}

func (e *Enforcement) post(ctx context.Context, path string, req EnforcementRequest) (int, []byte, error) {
	fields := map[string]any{
		"lease": req.Lease,
		"context": map[string]string{
			"user_id":     req.User,
			"project_id":  req.Project,
			"auth_url":    e.AuthURL,
			"region_name": e.Region,
		},
	}
	if req.CurrentLease != nil {
		fields["current_lease"] = req.CurrentLease
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return 0, nil, fmt.Errorf("encode the request to the enforcement service: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make the request to the enforcement service: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "berth")
	if e.Token != "" {
		r.Header.Set("X-Auth-Token", e.Token)
	}
	resp, err := e.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("send the request to the enforcement service: %w", withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, answer, err
}
