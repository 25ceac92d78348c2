package server

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"berth/internal/tracing"
)

// requestLog writes one log message about each request to the APIs.
type requestLog struct {
	log   *slog.Logger
	reads float64 // share of the successful GET and HEAD requests that the log names
}

// write writes the message about a request that was answered after the given time. The message has the route
// and not the path, so that its length does not depend on the client; slog quotes the names that Keystone has
// given.
func (l requestLog) write(r *http.Request, api string, rec *requestRecorder, took time.Duration) {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if read && rec.status < http.StatusBadRequest && rand.Float64() >= l.reads {
		return
	}
	ctx := tracing.WithRequestIDs(r.Context(), tracing.RequestIDs{
		ID:     rec.Header().Get("X-Openstack-Request-Id"),
		Global: tracing.ValidRequestID(r.Header.Get("X-Openstack-Request-Id")),
	})
	attributes := []slog.Attr{
		slog.String("method", methodLabel(r.Method)),
		slog.String("api", api),
		slog.String("route", rec.route),
		slog.Int("status", rec.status),
		slog.Float64("milliseconds", float64(took.Microseconds())/1000),
	}
	if rec.caller.Project != "" {
		attributes = append(attributes, slog.String("project", rec.caller.Project))
	}
	if rec.caller.AgentHost != "" {
		attributes = append(attributes, slog.String("agent_host", rec.caller.AgentHost))
	}
	l.log.LogAttrs(ctx, slog.LevelInfo, "Request answered", attributes...)
}
