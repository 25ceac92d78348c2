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
	"berth/internal/panics"
	"berth/internal/store/db"
	"berth/internal/version"
)

const (
	// maxNoteAge is the longest time that a due note of the outbox may wait for its delivery to Temporal. If
	// a due note waits longer than maxNoteAge, a process with the role relay is not ready.
	maxNoteAge = 10 * time.Second
	// checkTimeout is the maximum duration of one check of readiness.
	checkTimeout = 3 * time.Second
)

// serveHealth answers /healthz with 200: the process is alive. serveHealth does not check other services,
// because a restart of this process would not repair those services. The body also describes the build of
// this program and the versions of the APIs.
func serveHealth(w http.ResponseWriter, _ *http.Request) {
	build := version.Read()
	osapi.WriteJSON(w, http.StatusOK, map[string]any{
		"status":      "alive",
		"version":     build.Version,
		"commit":      build.Commit,
		"commit_date": build.CommitDate,
		"go":          build.Go,
		"schema":      db.Window(),
		"apis":        version.APIs(),
	})
}

// readinessCheck is one condition of readiness. The function `run` returns nil if the condition is met,
// otherwise the reason why it is not met. If `informational` is true, the process is ready even if the check
// fails, because the roles of the process can do their work without the condition.
type readinessCheck struct {
	name          string
	informational bool
	run           func(context.Context) error
}

// readinessChecks returns the checks for the roles of the process: a process is ready if each of its roles
// can do its work.
func (a *App) readinessChecks() []readinessCheck {
	relay, workers := a.hasRole(config.Relay), a.hasRole(config.Temporal)
	checks := []readinessCheck{
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
		checks = append(checks, readinessCheck{name: "keystone", run: a.checkKeystone})
	}
	switch {
	case a.rpcServer != nil:
		checks = append(
			checks,
			readinessCheck{name: "rabbitmq", run: checkConnected(a.rpcServer.Connected)},
			readinessCheck{
				name:          "virtual_hosts",
				informational: true,
				run:           checkVirtualHosts(a.rpcServer.Unreachable),
			},
		)
	case a.publisher != nil && workers:
		// Workflows retry notifications for agents until RabbitMQ is back, so the other work of the role
		// temporal continues without RabbitMQ.
		checks = append(
			checks,
			readinessCheck{name: "rabbitmq", informational: true, run: checkConnected(a.publisher.Connected)},
			readinessCheck{
				name:          "virtual_hosts",
				informational: true,
				run:           checkVirtualHosts(a.publisher.Unreachable),
			},
		)
	}
	return checks
}

// toleratedError is the error of a failed check that does not yet make the process unready.
type toleratedError struct{ error }

// checkKeystone returns an error if Keystone does not validate tokens. The process tolerates the error until
// Keystone has not answered for BERTH_KEYSTONE_GRACE: meanwhile, the API serves callers whose tokens are
// cached, and a short outage of Keystone must not make a load balancer remove every API process at the same
// time. A process to which Keystone has never answered serves no caller with a Keystone token.
func (a *App) checkKeystone(ctx context.Context) error {
	err := a.keystone.Check(ctx)
	if err == nil {
		return nil
	}
	since, ok := a.keystone.SinceValidation()
	if left := a.cfg.KeystoneGrace - since; ok && left > 0 {
		return toleratedError{
			fmt.Errorf("%w; the process stays ready for another %s", err, left.Round(time.Second)),
		}
	}
	return err
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

// checkVirtualHosts returns a check that fails while `unreachable` names virtual hosts of agents. The check
// is informational, because the process serves the agents in the other virtual hosts.
func checkVirtualHosts(unreachable func() []string) func(context.Context) error {
	return func(context.Context) error {
		if names := unreachable(); len(names) > 0 {
			return fmt.Errorf("cannot use the virtual hosts %s of RabbitMQ", strings.Join(names, ", "))
		}
		return nil
	}
}

// checkNamespace returns an error if Temporal does not answer, if it does not have the process's namespace,
// or if the database is bound to another namespace. A Temporal server without this namespace is healthy, but
// cannot start any workflow of berth.
func (a *App) checkNamespace(ctx context.Context) error {
	d, err := a.Temporal.WorkflowService().
		DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: a.namespace})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", a.namespace, err)
	}
	info := d.GetNamespaceInfo()
	if info.GetState() == enums.NAMESPACE_STATE_DELETED {
		return fmt.Errorf("namespace %s is deleted", a.namespace)
	}
	bound, err := a.store.Outbox.BoundNamespace(ctx)
	if err == nil && bound.ID != "" && bound.ID != info.GetId() {
		return fmt.Errorf(
			"the database is bound to another Temporal namespace (ID %s) than %s (ID %s), so no note is delivered",
			bound.ID, a.namespace, info.GetId(),
		)
	}
	return nil // the check of the database shows why the binding cannot be read
}

// checkNotes returns an error if a due note of the outbox has waited longer than maxNoteAge for its delivery
// to Temporal.
func (a *App) checkNotes(ctx context.Context) error {
	b, err := a.store.Outbox.Backlog(ctx)
	if err != nil {
		return err
	}
	if b.Oldest > maxNoteAge {
		return fmt.Errorf("%d notes wait for delivery to Temporal; the oldest has waited %s",
			b.Notes, b.Oldest.Round(time.Second))
	}
	return nil
}

// readiness contains the results of all checks.
type readiness struct {
	results map[string]string // name of the check → "ok" or the reason why the check failed
	// names of the checks that do not decide whether a process with these roles is ready
	informational []string
}

// checkReadiness runs all checks of the process.
func (a *App) checkReadiness(ctx context.Context) readiness {
	return runChecks(ctx, a.readinessChecks())
}

// runChecks runs the checks concurrently.
func runChecks(ctx context.Context, checks []readinessCheck) readiness {
	errs := make([]error, len(checks))
	var wait sync.WaitGroup
	for i, c := range checks {
		wait.Go(func() {
			defer panics.Recover(ctx, "the check of readiness "+c.name, &errs[i])
			ctx, cancel := context.WithTimeout(db.WithReserve(ctx), checkTimeout)
			defer cancel()
			errs[i] = c.run(ctx)
		})
	}
	wait.Wait()
	found := readiness{results: map[string]string{}, informational: []string{}}
	for i, c := range checks {
		found.results[c.name] = "ok"
		if errs[i] != nil {
			found.results[c.name] = errs[i].Error()
		}
		if tolerated := (toleratedError{}); c.informational || errors.As(errs[i], &tolerated) {
			found.informational = append(found.informational, c.name)
		}
	}
	return found
}

// with returns a copy of the readiness with one more result.
func (r readiness) with(name, result string) readiness {
	results := map[string]string{name: result}
	maps.Copy(results, r.results)
	return readiness{results: results, informational: append([]string{}, r.informational...)}
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
