package notify_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/notify"
)

func TestEnforcement_CheckFollowsTheServicesDecision(t *testing.T) {
	t.Parallel()
	const generic = "The external service that decides on leases did not allow it."
	for name, tt := range map[string]struct {
		status       int
		answer       string
		closed, open string // the expected refusals without and with FailOpen
	}{
		"allowed":                   {204, "", "", ""},
		"denied":                    {403, `{"message":"no money"}`, "no money", "no money"},
		"denied, without a message": {403, `{}`, generic, generic},
		"denied, in noise":          {403, `<html>`, generic, generic},
		"neither":                   {200, `{}`, generic, ""},
		"ill":                       {503, ``, generic, ""},
		"unreachable":               {0, ``, generic, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var path, token string
			var body map[string]any
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				_ = json.Unmarshal(raw, &body)
				path, token = r.URL.Path, r.Header.Get("X-Auth-Token")
				if tt.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			}))
			t.Cleanup(server.Close)
			for open, want := range map[bool]string{false: tt.closed, true: tt.open} {
				e, err := notify.NewEnforcement(notify.EnforcementConfig{
					URL:      server.URL + "/v1/",
					Token:    "secret",
					AuthURL:  "http://k",
					Region:   "r",
					FailOpen: open,
					Timeout:  time.Hour,
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := e.Check(t.Context(), "check-update", notify.EnforcementRequest{
					User:         "u",
					Project:      "p",
					Lease:        1,
					CurrentLease: 2,
				}); got != want {
					t.Errorf("check a lease with FailOpen %v: got the refusal %q, want %q", open, got, want)
				}
			}
			want := map[string]any{"lease": 1.0, "current_lease": 2.0,
				"context": map[string]any{
					"user_id":     "u",
					"project_id":  "p",
					"auth_url":    "http://k",
					"region_name": "r",
				}}
			mu.Lock()
			defer mu.Unlock()
			if d := cmp.Diff(want, body); d != "" || path != "/v1/check-update" || token != "secret" {
				t.Error(d, path, token)
			}
		})
	}
	if _, err := notify.NewEnforcement(notify.EnforcementConfig{URL: "ftp://h"}); err == nil {
		t.Error("NewEnforcement with an ftp URL: got no error, want one")
	}
}
