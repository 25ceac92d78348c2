package notify_test

import (
	"net/http"
	"slices"
	"testing"

	"berth/internal/notify"
)

// recordedRequests is a transport that records the paths of requests.
type recordedRequests []string

// RoundTrip implements http.RoundTripper.
func (t *recordedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	*t = append(*t, r.URL.RequestURI())
	return &http.Response{
		StatusCode: http.StatusNoContent,
		Request:    r,
		Header:     http.Header{},
		Body:       http.NoBody,
	}, nil
}

func TestRequests_HostileValuesDoNotChangeThePath(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"harmless", "..", "../../identity/v3/users", "a?b=c", "a#b", "%2e%2e", "a\r\nX-Auth-Token: b"} {
		sent := &recordedRequests{}
		wrap := func(http.RoundTripper) http.RoundTripper { return sent }
		nova, errNova := notify.NewNova(notify.Config{URL: "http://service.test/compute/v2.1", Wrap: wrap})
		webhook, errWebhook := notify.NewWebhook(
			notify.Config{URL: "http://service.test/hook?key=1", Wrap: wrap},
		)
		enforcement, errEnforcement := notify.NewEnforcement(
			notify.EnforcementConfig{URL: "http://service.test/enforce", Region: value, Wrap: wrap},
		)
		if errNova != nil || errWebhook != nil || errEnforcement != nil {
			t.Fatal(errNova, errWebhook, errEnforcement)
		}
		_, _ = nova.Send(t.Context(), []notify.Event{{
			Server: value,
			Name:   value,
			Status: value,
			Tag:    value,
		}})
		_ = webhook.Send(t.Context(), notify.Notification{
			ID:        value,
			Publisher: value,
			Type:      value,
			Payload:   value,
		})
		enforcement.Check(t.Context(), "check-create",
			notify.EnforcementRequest{User: value, Project: value, Lease: value})
		enforcement.Notify(t.Context(), "on-end",
			notify.EnforcementRequest{User: value, Project: value, Lease: value})
		want := []string{
			"/compute/v2.1/os-server-external-events",
			"/hook?key=1",
			"/enforce/check-create",
			"/enforce/on-end",
		}
		if !slices.Equal(*sent, want) {
			t.Errorf("requests with the value %q: got %q, want %q", value, *sent, want)
		}
	}
}
