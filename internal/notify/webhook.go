package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Notification is a message to the webhook, in the format of OpenStack's notifications.
type Notification struct {
	ID        string    // stays the same when the notification is repeated
	Publisher string    // for example blazar.lease
	Type      string    // for example lease.create
	At        time.Time // time of the event
	Payload   any
}

// Webhook sends notifications to one URL by POST. Webhook is safe for concurrent use.
type Webhook struct {
	url, token string
	http       *http.Client
}

// NewWebhook checks the configuration and returns the client of the webhook. NewWebhook does not connect to
// the URL. The webhook's URL may have a query.
func NewWebhook(c Config) (*Webhook, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.Fragment != "" {
		return nil, errWebhookURL
	}
	return &Webhook{url: c.URL, token: c.Token, http: newClient(c.Timeout, c.Wrap)}, nil
}

// withoutURL returns the error of a request without its URL, because the path and the query of the URL of a
// webhook can have secrets.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

var errWebhookURL = errors.New("the URL is not of the form http://host:port/path")

type envelope struct {
	ID        string `json:"message_id"`
	Publisher string `json:"publisher_id"`
	Type      string `json:"event_type"`
	Priority  string `json:"priority"`
	Timestamp string `json:"timestamp"`
	Payload   any    `json:"payload"`
}

// Send sends a notification once. Send returns nil for any response with a 2xx status. If Send returns
// ErrRejected, a retry is useless.
func (w *Webhook) Send(ctx context.Context, n Notification) error {
	body, err := json.Marshal(envelope{
		ID:        n.ID,
		Publisher: n.Publisher,
		Type:      n.Type,
		Priority:  "INFO",
		Timestamp: n.At.UTC().Format("2006-01-02 15:04:05.000000"),
		Payload:   n.Payload,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "berth")
	if w.token != "" {
		r.Header.Set("X-Auth-Token", w.token)
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return fmt.Errorf("post %s to the webhook: %w", n.Type, withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case isTransient(resp.StatusCode):
		return fmt.Errorf("post %s to the webhook: status %d", n.Type, resp.StatusCode)
	default:
		return fmt.Errorf("%w: status %d of the webhook", ErrRejected, resp.StatusCode)
	}
}
