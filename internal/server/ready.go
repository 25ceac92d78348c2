package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/api/osapi"
	"berth/internal/config"
	"berth/internal/store/db"
)

const (
	// maxNoteAge is the longest time that a due note of the outbox may wait for its delivery to Temporal. If a due note waits longer than
	// maxNoteAge, a process with the role relay is not ready.
	maxNoteAge = 10 * time.Second
	// checkTimeout is the maximum duration of one check of readiness.
	checkTimeout = 3 * time.Second
)

// serveHealth answers /healthz with 200: the process is alive. serveHealth does not check other services, because a restart of this process
// would not repair those services.
func serveHealth(w http.ResponseWriter, _ *http.Request) {
	osapi.WriteJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

// readinessCheck is one condition of readiness. The function `run` returns nil if the condition is met, otherwise the reason why it is not
// met. If `informational` is true, the process is ready even if the check fails, because the roles of the process can do their work without
// the condition.
type readinessCheck struct {
	name          string
	informational bool
	run           func(context.Context) error
}

// readinessChecks returns the checks for the roles of the process: a process is ready if each of its roles can do its work.
func (a *App) readinessChecks() []readinessCheck {
	relay, workers := a.hasRole(config.Relay), a.hasRole(config.Temporal)
	checks := []readinessCheck{
		{name: "process", run: func(context.Context) error {
			if a.stopping.Load() {
				return errors.New("the process is stopping")
			}
			return nil
		}},
		{name: "database", run: a.store.CheckWritable},
		{name: "notes", informational: !relay, run: a.checkNotes},
		{name: "temporal", informational: !relay && !workers, run: a.checkNamespace},
	}
	if workers {
		checks = append(checks, readinessCheck{name: "workers", run: func(context.Context) error {
			if !a.workersStarted.Load() {
				return errors.New("the workers of this process have not started")
			}
			return nil
		}})
	}
	if a.keystone != nil && a.hasRole(config.API) {
		// Without Keystone, the API still serves callers with a cached token and agents with their own tokens, so a load balancer must not
		// remove every API process.
		checks = append(checks, readinessCheck{name: "keystone", informational: true, run: a.keystone.Check})
	}
	switch {
	case a.rpcServer != nil:
		checks = append(checks, readinessCheck{name: "rabbitmq", run: checkConnected(a.rpcServer.Connected)},
			readinessCheck{name: "virtual_hosts", informational: true, run: checkVirtualHosts(a.rpcServer.Unreachable)})
	case a.publisher != nil && workers:
		// Workflows retry notifications for agents until RabbitMQ is back, so the other work of the role temporal continues without RabbitMQ.
		checks = append(checks, readinessCheck{name: "rabbitmq", informational: true, run: checkConnected(a.publisher.Connected)},
			readinessCheck{name: "virtual_hosts", informational: true, run: checkVirtualHosts(a.publisher.Unreachable)})
	}
	return checks
}

// checkConnected returns a check that fails while `connected` returns false.
func checkConnected(connected func() bool) func(context.Context) error {
	return func(context.Context) error {
		if !connected() {
			return errors.New("is not connected")
		}
		return nil
	}
}

// checkVirtualHosts returns a check that fails while `unreachable` names virtual hosts of agents. The check is informational, because the
// process serves the agents in the other virtual hosts.
func checkVirtualHosts(unreachable func() []string) func(context.Context) error {
	return func(context.Context) error {
		if names := unreachable(); len(names) > 0 {
			return fmt.Errorf("cannot use the virtual hosts %s of RabbitMQ", strings.Join(names, ", "))
		}
		return nil
	}
}

// checkNamespace returns an error if Temporal does not answer, or if it does not have the process's namespace. A Temporal server without
// this namespace is healthy, but cannot start any workflow of berth.
func (a *App) checkNamespace(ctx context.Context) error {
	d, err := a.Temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: a.namespace})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", a.namespace, err)
	}
	if state := d.GetNamespaceInfo().GetState(); state == enums.NAMESPACE_STATE_DELETED {
		return fmt.Errorf("namespace %s is deleted", a.namespace)
	}
	return nil
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

// readiness contains the results of all checks.
type readiness struct {
	results       map[string]string // name of the check → "ok" or the reason why the check failed
	informational []string          // names of the checks that do not decide whether a process with these roles is ready
}

// checkReadiness runs all checks concurrently.
func (a *App) checkReadiness(ctx context.Context) readiness {
	checks := a.readinessChecks()
	results := make([]string, len(checks))
	var wait sync.WaitGroup
	for i, c := range checks {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(db.WithReserve(ctx), checkTimeout)
			defer cancel()
			results[i] = "ok"
			if err := c.run(ctx); err != nil {
				results[i] = err.Error()
			}
		})
	}
	wait.Wait()
	found := readiness{results: map[string]string{}, informational: []string{}}
	for i, c := range checks {
		found.results[c.name] = results[i]
		if c.informational {
			found.informational = append(found.informational, c.name)
		}
	}
	return found
}

// failures returns the failed checks that make the process not ready, as "name: reason", sorted by name.
func (r readiness) failures() []string {
	var failures []string
	for _, name := range slices.Sorted(maps.Keys(r.results)) {
		if r.results[name] != "ok" && !slices.Contains(r.informational, name) {
			failures = append(failures, name+": "+r.results[name])
		}
	}
	return failures
}

// serveReadiness answers /readyz: 200 if all checks that the roles of this process need pass, otherwise 503. The body of the response
// contains the result of each check, and names the informational checks.
func (a *App) serveReadiness(w http.ResponseWriter, r *http.Request) {
	found := a.checkReadiness(r.Context())
	status, code := "ready", http.StatusOK
	if len(found.failures()) > 0 {
		status, code = "not ready", http.StatusServiceUnavailable
	}
	osapi.WriteJSON(w, code, map[string]any{"status": status, "checks": found.results, "informational": found.informational})
}
