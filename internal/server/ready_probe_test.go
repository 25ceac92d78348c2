package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/config"
	"berth/internal/panics"
	"berth/internal/server"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// unreachable is a time that no test takes.
const unreachable = 24 * time.Hour

// heldCheck is a check of readiness that runs until the test releases it.
type heldCheck struct {
	begun   atomic.Int32
	release chan struct{}
}

func (c *heldCheck) run(ctx context.Context) string {
	c.begun.Add(1)
	select {
	case <-c.release:
		return "ok"
	case <-ctx.Done():
		return ctx.Err().Error()
	}
}

// serveProbe serves a probe of readiness, and returns its URL.
func serveProbe(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// readProbe requests the probe, and returns the status and the result of the checks.
func readProbe(t *testing.T, url string) (int, servertest.Readiness) {
	t.Helper()
	var body servertest.Readiness
	r, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, body
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Error(err)
	}
	return r.StatusCode, body
}

func TestReadiness_ConcurrentRequestsShareOneCheck(t *testing.T) {
	t.Parallel()
	check := &heldCheck{release: make(chan struct{})}
	probe, waiting := server.NewReadinessProbe(unreachable, check.run, func() bool { return false })
	url := serveProbe(t, probe)
	const clients = 100
	var requests sync.WaitGroup
	request := func() {
		if code, body := readProbe(t, url); code != http.StatusOK || body.Checks["scripted"] != "ok" ||
			body.Checks["process"] != "ok" {
			t.Errorf("one of many concurrent requests: got %d %+v, want 200", code, body)
		}
	}
	requests.Go(request)
	servertest.Await(t, "a check runs", func() bool { return check.begun.Load() == 1 })
	for range clients - 1 {
		requests.Go(request)
	}
	servertest.Await(t, "all other requests wait",
		func() bool { return check.begun.Load() > 1 || waiting() == clients-1 })

	close(check.release)
	requests.Wait()

	if code, _ := readProbe(t, url); code != http.StatusOK {
		t.Errorf("request after the check: got %d, want 200", code)
	}
	if n := check.begun.Load(); n != 1 {
		t.Errorf("checks for %d requests: got %d, want 1", clients+1, n)
	}
}

func TestReadiness_CheckWhoseRequestsHaveLeftServesTheNextRequest(t *testing.T) {
	t.Parallel()
	check := &heldCheck{release: make(chan struct{})}
	probe, waiting := server.NewReadinessProbe(unreachable, check.run, func() bool { return false })
	url := serveProbe(t, probe)
	for range 5 {
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
				t.Errorf("request during a check that hangs: got %s, want no answer", answer.Status)
			}
		}()
		servertest.Await(t, "a check runs", func() bool { return check.begun.Load() > 0 })
		leave()
		<-left
	}
	next := make(chan int)
	go func() {
		code, _ := readProbe(t, url)
		next <- code
	}()
	servertest.Await(t, "the next request waits, or begins another check",
		func() bool { return waiting() > 0 || check.begun.Load() > 1 })

	close(check.release)

	if code, n := <-next, check.begun.Load(); code != http.StatusOK || n != 1 {
		t.Errorf("request after others that did not wait: got %d after %d checks, want 200 after 1", code, n)
	}
}

func TestReadiness_ResultIsKeptForALimitedTime(t *testing.T) {
	t.Parallel()
	var checks atomic.Int32
	probe, _ := server.NewReadinessProbe(time.Nanosecond, func(context.Context) string {
		if checks.Add(1) == 1 {
			return "ok"
		}
		return "broken"
	}, func() bool { return false })
	url := serveProbe(t, probe)
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		if code, body := readProbe(t, url); code != want {
			t.Errorf("request when the last result is too old: got %d %+v, want %d", code, body, want)
		}
	}
}

func TestReadiness_StoppingProcessIsNotReadyAtOnce(t *testing.T) {
	t.Parallel()
	var stopping atomic.Bool
	probe, _ := server.NewReadinessProbe(unreachable,
		func(context.Context) string { return "ok" }, stopping.Load)
	url := serveProbe(t, probe)
	if code, body := readProbe(t, url); code != http.StatusOK {
		t.Errorf("request to a running process: got %d %+v, want 200", code, body)
	}

	stopping.Store(true)

	if code, body := readProbe(t, url); code != http.StatusServiceUnavailable ||
		!strings.Contains(body.Checks["process"], "stopping") ||
		body.Status != "not ready" {
		t.Errorf("request to a process that is stopping: got %d %+v, want 503 with the reason", code, body)
	}
}

// TestReadiness_ProcessKeepsTheResult damages the database after a check.
func TestReadiness_ProcessKeepsTheResult(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	a := servertest.StartApp(t, config.API, "BERTH_DATABASE_URL="+url)
	a.KeepReadiness(unreachable)
	servertest.AwaitReady(t, a)

	storetest.Exec(t, url, `alter table port rename to moved`)

	if code, body := servertest.ReadReadiness(t, a); code != http.StatusOK ||
		body.Checks["database"] != "ok" {
		t.Errorf("/readyz while the result of the last check is kept: got %d %+v, want 200", code, body)
	}
}

func TestReady_PanicInACheckFailsOnlyTheCheck(t *testing.T) {
	t.Parallel()
	got := server.RunCheck(t.Context(), func(context.Context) error { panic("scripted") })
	if !strings.Contains(got, panics.Err.Error()) {
		t.Errorf("result of a check that panics: got %q, want the error %v", got, panics.Err)
	}
}
