package notify_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/notify"
	"berth/internal/notify/notifytest"
)

func newWebhook(t *testing.T, token string) (*notifytest.Webhook, *notify.Webhook) {
	t.Helper()
	stub := &notifytest.Webhook{Token: "secret"}
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	client, err := notify.NewWebhook(
		notify.Config{URL: server.URL + "/in?of=leases", Token: token, Timeout: time.Hour},
	)
	if err != nil {
		t.Fatal(err)
	}
	return stub, client
}

func TestWebhookSend_RequestForm(t *testing.T) {
	t.Parallel()
	stub, client := newWebhook(t, "secret")
	at := time.Date(2030, 1, 31, 10, 0, 0, 5000, time.FixedZone("", 3600))

	err := client.Send(t.Context(), notify.Notification{
		ID:        "m",
		Publisher: "p",
		Type:      "lease.create",
		At:        at,
		Payload:   map[string]any{"lease_id": "l"},
	})

	want := []notifytest.ReceivedNotification{
		{
			ID:        "m",
			Publisher: "p",
			Type:      "lease.create",
			Priority:  "INFO",
			Timestamp: "2030-01-31 09:00:00.000005",
			Payload:   map[string]any{"lease_id": "l"},
		},
	}
	if d := cmp.Diff(want, stub.Notifications()); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestWebhookSend_Statuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault         notifytest.Fault
		failed, final bool
		taken         int
	}{
		"all well":     {taken: 1},
		"bad request":  {fault: notifytest.Fault{Status: 400}, failed: true, final: true},
		"gone":         {fault: notifytest.Fault{Status: 410}, failed: true, final: true},
		"unknown path": {fault: notifytest.Fault{Status: 404}, failed: true},
		"forbidden":    {fault: notifytest.Fault{Status: 403}, failed: true},
		"overload":     {fault: notifytest.Fault{Status: 503}, failed: true},
		"redirect":     {fault: notifytest.Fault{Status: 307}, failed: true},
		"lost before":  {fault: notifytest.Fault{DropConnection: true}, failed: true},
		"lost after":   {fault: notifytest.Fault{DropConnection: true, Applied: true}, failed: true, taken: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, client := newWebhook(t, "secret")
			stub.InjectFaults(tt.fault)

			err := client.Send(t.Context(), notify.Notification{ID: "m"})

			if (err != nil) != tt.failed || errors.Is(err, notify.ErrRejected) != tt.final ||
				len(stub.Notifications()) != tt.taken {
				t.Errorf(
					"send a notification: got error %v and the notifications %v; want failed %v, rejected %v and %d notifications",
					err, stub.Notifications(), tt.failed, tt.final, tt.taken,
				)
			}
		})
	}
	_, stranger := newWebhook(t, "wrong")
	if err := stranger.Send(t.Context(), notify.Notification{}); err == nil ||
		errors.Is(err, notify.ErrRejected) {
		t.Errorf("send with an invalid token: got %v, want a transient error", err)
	}
}

func TestNewWebhook_RefusesInvalidURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "host", "ftp://h", "http://u:p@h", "http://h:port"} {
		if _, err := notify.NewWebhook(notify.Config{URL: url}); err == nil ||
			strings.Contains(err.Error(), "u:p") {
			t.Errorf("NewWebhook with the URL %q: got error %v, want one without the password", url, err)
		}
	}
}

// The error of a request is in Temporal's histories and in logs.
func TestWebhook_ErrorsDoNotContainTheURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	url := server.URL + "/s3cret?token=s3cret"
	webhook, err := notify.NewWebhook(notify.Config{URL: url, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	enforcement, err := notify.NewEnforcement(notify.EnforcementConfig{URL: url, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"webhook":             webhook.Send(t.Context(), notify.Notification{Type: "lease.create"}),
		"enforcement service": enforcement.Post(t.Context(), "check-create"),
	} {
		if !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("request to the %s without a server: got error %v, want one that says so without the URL", what, err)
		}
	}
}
