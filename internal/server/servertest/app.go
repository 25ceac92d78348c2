package servertest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/config"
	"berth/internal/devstack/temporaltest"
	"berth/internal/server"
	"berth/internal/store/storetest"
)

// StartApp runs a server.App with the given roles inside the test process until the test ends. The App has
// its own database and Temporal namespace. An answer that differs from the OpenAPI document of its API fails
// the test. The parameter `settings` overrides the default settings of the App.
func StartApp(t *testing.T, roles string, settings ...string) *server.App {
	t.Helper()
	a, err := open(t, roles, settings)
	if err != nil {
		t.Fatal(err)
	}
	a.Wrap(func(h http.Handler) http.Handler { return openapitest.Handler(t, h) })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the app ended with the error %v, want nil", err)
		}
	})
	return a
}

// OpenError opens a server.App with the role api, as StartApp does, and returns the error. If the App opens
// without an error, OpenError returns nil.
func OpenError(t *testing.T, settings ...string) error {
	t.Helper()
	_, err := open(t, config.API, settings)
	return err
}

// open opens a server.App with its own database and Temporal namespace.
func open(t *testing.T, roles string, settings []string) (*server.App, error) {
	t.Helper()
	n := temporaltest.New(t)
	environ := append(
		[]string{
			"BERTH_AUTH=noauth",
			"BERTH_LISTEN=127.0.0.1:0",
			answersUnwatched,
			"BERTH_DATABASE_URL=" + storetest.URL(t),
			"BERTH_ROLES=" + roles,
			"TEMPORAL_NAMESPACE=" + n.Name,
			"TEMPORAL_ADDRESS=" + n.Address,
			"TEMPORAL_CONFIG_FILE=" + os.DevNull,
		},
		settings...)
	cfg, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := 0, len(environ)-1; i < j; i, j = i+1, j-1 { // if a name occurs twice, the first value counts
		environ[i], environ[j] = environ[j], environ[i]
	}
	return server.Open(t.Context(), cfg, environ)
}

// Readiness is the body of /readyz.
type Readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
	// Informational names the checks that do not decide whether the process is ready.
	Informational []string `json:"informational"`
}

// ReadReadiness returns the status and the body of /readyz.
func ReadReadiness(t *testing.T, a *server.App) (int, Readiness) {
	t.Helper()
	r, err := http.Get(a.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var body Readiness
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, body
}

// AwaitReady waits until the App is ready. If the App is not ready after ten minutes, AwaitReady fails the
// test and prints the result of each readiness check.
func AwaitReady(t *testing.T, a *server.App) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		code, body := ReadReadiness(t, a)
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the app is not ready after ten minutes: %v", body)
		}
	}
}

// Await waits until the condition is true. If the condition is still false after ten minutes, Await fails the
// test.
func Await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("condition is still false after ten minutes: %s", what)
		}
	}
}
