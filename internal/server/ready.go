package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/api/osapi"
)

const (
	// maxNoteAge is the longest time that a due note may wait for its delivery to Temporal. If a due note waits longer than maxNoteAge, the
	// process is not ready.
	maxNoteAge = 10 * time.Second
	// checkTimeout is the maximum duration of one check of readiness.
	checkTimeout = 3 * time.Second
)

// serveHealth answers /healthz with 200: the process is alive. serveHealth does not check other services, because a restart of this process
// would not repair those services.
func serveHealth(w http.ResponseWriter, _ *http.Request) {
	osapi.WriteJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

// readinessCheck is one condition of readiness. The function `run` returns nil if the condition of readiness is met, otherwise the reason
// why the condition is not met.
type readinessCheck struct {
	name string
	run  func(context.Context) error
}

func (a *App) readinessChecks() []readinessCheck {
	checks := []readinessCheck{
		{"process", func(context.Context) error {
			if a.stopping.Load() {
				return errors.New("the process is stopping")
			}
			return nil
		}},
		{"database", a.store.Ping},
		{"notes", a.checkNotes},
		{"temporal", func(ctx context.Context) error {
			_, err := a.Temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
		{"workers", func(context.Context) error {
			if !a.workersStarted.Load() {
				return errors.New("the workers of this process have not started")
			}
			return nil
		}},
	}
	if a.rpcServer != nil {
		checks = append(checks, readinessCheck{"rabbitmq", func(context.Context) error {
			if !a.rpcServer.Connected() {
				return errors.New("is not connected")
			}
			return nil
		}})
	}
	return checks
}

// checkNotes returns an error if a due note of the outbox has waited longer than maxNoteAge for its delivery to Temporal.
func (a *App) checkNotes(ctx context.Context) error {
	b, err := a.store.Outbox.Backlog(ctx)
	if err != nil {
		return err
	}
	if b.Oldest > maxNoteAge {
		return fmt.Errorf("%d notes wait for delivery to Temporal; the oldest has waited %s", b.Notes, b.Oldest.Round(time.Second))
	}
	return nil
}

// readiness maps the name of each readiness check to "ok" or to the reason why the check failed.
type readiness map[string]string

// checkReadiness runs all checks concurrently.
func (a *App) checkReadiness(ctx context.Context) readiness {
	checks := a.readinessChecks()
	results := make(chan [2]string, len(checks))
	for _, c := range checks {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			result := "ok"
			if err := c.run(ctx); err != nil {
				result = err.Error()
			}
			results <- [2]string{c.name, result}
		}()
	}
	found := readiness{}
	for range checks {
		r := <-results
		found[r[0]] = r[1]
	}
	return found
}

// failures returns the failed checks as "name: reason", sorted by name.
func (r readiness) failures() []string {
	var failures []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name] != "ok" {
			failures = append(failures, name+": "+r[name])
		}
	}
	return failures
}

// serveReadiness answers /readyz: 200 if all checks pass, otherwise 503. The body of the response contains the result of each check.
func (a *App) serveReadiness(w http.ResponseWriter, r *http.Request) {
	found := a.checkReadiness(r.Context())
	status, code := "ready", http.StatusOK
	if len(found.failures()) > 0 {
		status, code = "not ready", http.StatusServiceUnavailable
	}
	osapi.WriteJSON(w, code, map[string]any{"status": status, "checks": found})
}
