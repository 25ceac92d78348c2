package server

import (
	"context"
	"net/http"
	"time"

	"berth/internal/api/osapi"
)

// keepReadiness is how long a readinessProbe answers with the result of its last check.
const keepReadiness = time.Second

// readinessProbe answers /readyz. Clients without a token may send any number of requests to /readyz, so the
// requests share the result of a check. Without this, many requests would occupy the connections to the
// database, the checks would time out, and a load balancer would remove a process that can do its work.
type readinessProbe struct {
	checks   *recentResult[readiness]
	stopping func() bool
}

func newReadinessProbe(check func(context.Context) readiness, stopping func() bool) *readinessProbe {
	run := func(ctx context.Context) (readiness, error) { return check(ctx), nil }
	return &readinessProbe{newRecentResult(keepReadiness, run), stopping}
}

// ServeHTTP answers 200 if all checks that the roles of this process need pass, otherwise 503. The body of
// the response contains the result of each check, and names the informational checks. A process that is
// stopping is not ready from the first moment, whatever its last check has found.
func (p *readinessProbe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, err := p.checks.read(r.Context())
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
