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

// Message is what a webhook hears. The envelope is that of OpenStack's notifications.
type Notification struct {
	ID        string    // the same however often it is sent
	Publisher string    // blazar.lease
	Type      string    // lease.create …
	At        time.Time // when it happened
	Payload   any
}

// Webhook posts messages to one URL. It is safe for concurrent use.
type Webhook struct {
	url, token string
	http       *http.Client
}

// NewWebhook checks the configuration. It does not connect. The URL may have a query.
func NewWebhook(c Config) (*Webhook, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errWebhookURL
	}
	return &Webhook{url: c.URL, token: c.Token, http: newClient(c.Timeout)}, nil
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

// Send delivers one message. Any 2xx means that it was heard. ErrRefused means that it never will be; every other
// error is worth another try.
func (w *Webhook) Send(ctx context.Context, m Notification) error {
	body, err := json.Marshal(envelope{ID: m.ID, Publisher: m.Publisher, Type: m.Type, Priority: "INFO",
		Timestamp: m.At.UTC().Format("2006-01-02 15:04:05.000000"), Payload: m.Payload})
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
		return fmt.Errorf("post %s to the webhook: %w", m.Type, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case mendable(resp.StatusCode):
		return fmt.Errorf("post %s to the webhook: it answered %d", m.Type, resp.StatusCode)
	default:
		return fmt.Errorf("%w: the webhook answered %d", ErrRejected, resp.StatusCode)
	}
}
