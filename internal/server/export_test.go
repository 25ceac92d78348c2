package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/config"
	"berth/internal/store"
	"berth/internal/tracing"
)

// NewLogger returns the logger of a process with the settings.
func NewLogger(w io.Writer, cfg config.Config) *slog.Logger { return newLogger(w, cfg) }

// Store returns the app's store.
func (a *App) Store() *store.Store { return a.store }

// Registry returns the metrics of the app.
func (a *App) Registry() *prometheus.Registry { return a.registry }

// DatabaseURL returns the URL of the app's database.
func (a *App) DatabaseURL() string { return a.cfg.DatabaseURL }

// NewCachedCollector returns a cachedCollector, and a function that sets the time at which its values expire.
func NewCachedCollector(c prometheus.Collector) (prometheus.Collector, func(time.Time)) {
	cached := &cachedCollector{Collector: c}
	return cached, func(at time.Time) { cached.until = at }
}

// MeasureService returns the function that measures the requests to a service.
func MeasureService(
	registry prometheus.Registerer,
	service string,
) func(http.RoundTripper) http.RoundTripper {
	return newServiceMetrics(registry).measure(service)
}

// KeepReadiness sets how long the app answers /readyz with the result of its last check.
func (a *App) KeepReadiness(d time.Duration) { a.ready.checks.keepFor(d) }

func (r *recentResult[V]) keepFor(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = d
}

// NewReadinessProbe returns a handler of /readyz that keeps the result of `check` for the time `keep`, and a
// function that returns the number of requests that wait for a check to begin.
func NewReadinessProbe(
	keep time.Duration,
	check func(context.Context) string,
	stopping func() bool,
) (h http.Handler, waiting func() int) {
	p := newReadinessProbe(func(ctx context.Context) readiness {
		return readiness{results: map[string]string{"scripted": check(ctx)}}
	}, stopping)
	p.checks.keepFor(keep)
	return p, p.checks.runs.Waiting
}

// RunCheck runs a check of readiness and returns its result.
func RunCheck(ctx context.Context, check func(context.Context) error) string {
	return runChecks(ctx, []readinessCheck{{name: "scripted", run: check}}).results["scripted"]
}

// NewMetricsHandler returns a handler of /metrics that keeps the metrics for the time `keep`, and a function
// that returns the number of requests that wait for a gathering to begin.
func NewMetricsHandler(keep time.Duration, g prometheus.Gatherer) (h http.Handler, waiting func() int) {
	m := newMetricsHandler(g)
	m.pages.keepFor(keep)
	return m, m.pages.runs.Waiting
}

// MeasureRequests returns the handler of an API that logs its requests to the logger.
func MeasureRequests(log *slog.Logger, reads float64, api string, h http.Handler) http.Handler {
	return newHTTPMetrics(prometheus.NewRegistry(), &tracing.Traces{}, requestLog{log, reads}).measure(api, h)
}
