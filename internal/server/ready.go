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
	// lateNote is the age of a due note at which something is wrong with its delivery.
	lateNote = 10 * time.Second
	// probe is how long one check may take.
	probe = 3 * time.Second
)

// healthz says that the process lives. Whoever restarts processes asks here; that a neighbour is away is no
// reason to.
func healthz(w http.ResponseWriter, _ *http.Request) {
	osapi.WriteJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

// check is one condition of readiness: nil, or what is wrong.
type check struct {
	name string
	run  func(context.Context) error
}

func (a *App) checks() []check {
	checks := []check{
		{"process", func(context.Context) error {
			if a.stopping.Load() {
				return errors.New("is stopping")
			}
			return nil
		}},
		{"database", a.store.Ping},
		{"notes", a.notesMove},
		{"temporal", func(ctx context.Context) error {
			_, err := a.Temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
		{"workers", func(context.Context) error {
			if !a.working.Load() {
				return errors.New("have not started")
			}
			return nil
		}},
	}
	if a.agents != nil {
		checks = append(checks, check{"rabbitmq", func(context.Context) error {
			if !a.agents.Connected() {
				return errors.New("is away")
			}
			return nil
		}})
	}
	return checks
}

// notesMove tells whether what the API writes reaches Temporal.
func (a *App) notesMove(ctx context.Context) error {
	b, err := a.store.Backlog(ctx)
	if err != nil {
		return err
	}
	if b.Oldest > lateNote {
		return fmt.Errorf("%d wait for delivery to Temporal, the oldest for %s", b.Notes, b.Oldest.Round(time.Second))
	}
	return nil
}

// examination is what each check found: "ok" or what is wrong.
type examination map[string]string

// examine runs every check at the same time.
func (a *App) examine(ctx context.Context) examination {
	checks := a.checks()
	results := make(chan [2]string, len(checks))
	for _, c := range checks {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, probe)
			defer cancel()
			result := "ok"
			if err := c.run(ctx); err != nil {
				result = err.Error()
			}
			results <- [2]string{c.name, result}
		}()
	}
	found := examination{}
	for range checks {
		r := <-results
		found[r[0]] = r[1]
	}
	return found
}

// troubles are the checks that failed, in order.
func (e examination) troubles() []string {
	var troubles []string
	for _, name := range slices.Sorted(maps.Keys(e)) {
		if e[name] != "ok" {
			troubles = append(troubles, name+": "+e[name])
		}
	}
	return troubles
}

// readyz says whether the process should be given work: 200, or 503 and which conditions are not met.
func (a *App) readyz(w http.ResponseWriter, r *http.Request) {
	found := a.examine(r.Context())
	status, code := "ready", http.StatusOK
	if len(found.troubles()) > 0 {
		status, code = "not ready", http.StatusServiceUnavailable
	}
	osapi.WriteJSON(w, code, map[string]any{"status": status, "checks": found})
}
