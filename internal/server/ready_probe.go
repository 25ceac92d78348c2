package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/coalesce"
)

// keepReadiness is how long a readinessProbe answers with the result of its last check.
const keepReadiness = time.Second

// readinessProbe answers /readyz. Clients without a token may send any number of requests to /readyz, so the
// requests share one check at a time, and the process keeps the result of a check for a short time. Without
// this, many requests would occupy the connections to the database, the checks would time out, and a load
// balancer would remove a process that can do its work.
type readinessProbe struct {
	check    func(context.Context) readiness
	keep     time.Duration
	stopping func() bool
	checks   *coalesce.Group[readiness]

	mu    sync.Mutex
	last  readiness
	until time.Time // last is valid until this time
}

func newReadinessProbe(check func(context.Context) readiness, stopping func() bool) *readinessProbe {
	return &readinessProbe{
		check:    check,
		keep:     keepReadiness,
		stopping: stopping,
		checks:   coalesce.NewGroup[readiness](0),
	}
}

// kept returns the result of the last check. The result ok is false if the result is too old.
func (p *readinessProbe) kept() (last readiness, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, time.Now().Before(p.until)
}

// read returns the result of the last check, or of a new check if the last one is too old. A new check
// continues when the requests that wait for it have left, because its result serves the next requests.
func (p *readinessProbe) read(ctx context.Context) (readiness, error) {
	if last, ok := p.kept(); ok {
		return last, nil
	}
	return p.checks.Do(ctx, func(ctx context.Context) (readiness, error) {
		if last, ok := p.kept(); ok {
			return last, nil
		}
		found := p.check(context.WithoutCancel(ctx))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last, p.until = found, time.Now().Add(p.keep)
		return found, nil
	})
}

// ServeHTTP answers 200 if all checks that the roles of this process need pass, otherwise 503. The body of
// the response contains the result of each check, and names the informational checks. A process that is
// stopping is not ready from the first moment, whatever its last check has found.
func (p *readinessProbe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, err := p.read(r.Context())
	switch {
	case err != nil:
		found = found.with("process", err.Error())
	case p.stopping():
		found = found.with("process", "the process is stopping")
	default:
		found = found.with("process", "ok")
	}
	status, code := "ready", http.StatusOK
	if len(found.failures()) > 0 {
		status, code = "not ready", http.StatusServiceUnavailable
	}
	osapi.WriteJSON(w, code,
		map[string]any{"status": status, "checks": found.results, "informational": found.informational})
}
