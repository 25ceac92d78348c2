package harness

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// testTimeout is how long a test waits for an expected event before it fails.
const testTimeout = 2 * time.Minute

// TestWithHeartbeats_ContinueAfterErrors rejects every third heartbeat, as happens while berth restarts.
func TestWithHeartbeats_ContinueAfterErrors(t *testing.T) {
	t.Parallel()
	requests := make(chan struct{}, 1000)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/agent/v1/state" {
			t.Errorf("unexpected request %s %s, want POST /agent/v1/state", r.Method, r.URL)
		}
		if n.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		select {
		case requests <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)

	err := NewAPI(server.URL).WithHeartbeats(t.Context(), time.Millisecond, func(context.Context) error {
		for range 10 {
			select {
			case <-requests:
			case <-time.After(testTimeout):
				return errors.New("wait for the next heartbeat: got none within testTimeout, want one")
			}
		}
		return nil
	})

	if err != nil {
		t.Error(err)
	}
}

func TestWithHeartbeats_FirstMustSucceed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)

	err := NewAPI(server.URL).WithHeartbeats(t.Context(), time.Hour, func(context.Context) error {
		t.Error("the first heartbeat failed: want that withHeartbeats does not call its function, but it did")
		return nil
	})

	if err == nil {
		t.Error("the first heartbeat failed: got no error from withHeartbeats, want one")
	}
}
