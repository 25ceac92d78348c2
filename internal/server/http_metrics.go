package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/tracing"
)

// httpMetrics makes the metrics, the spans and the log messages of the requests to the APIs.
type httpMetrics struct {
	traces    *tracing.Traces
	log       requestLog
	durations *prometheus.HistogramVec // by API, method and status
	requests  *prometheus.CounterVec   // by API, method, route and status
	routes    *prometheus.HistogramVec // by API, method and route
	conflicts *prometheus.CounterVec   // by API and error type
	inFlight  *prometheus.GaugeVec     // by API
}

// unmatchedRoute is the value of the label `route` of requests whose path and method belong to no route.
const unmatchedRoute = "unmatched"

func newHTTPMetrics(registry prometheus.Registerer, traces *tracing.Traces, log requestLog) *httpMetrics {
	m := &httpMetrics{
		traces: traces,
		log:    log,
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_http_request_duration_seconds",
			Help:    "Time to answer an HTTP request, in seconds, by API, method and status code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"api", "method", "code"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_http_route_requests_total",
			Help: "HTTP requests answered, by API, method, route (the path without values) and status code.",
		}, []string{"api", "method", "route", "code"}),
		routes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_http_route_duration_seconds",
			Help:    "Time to answer an HTTP request, in seconds, by API, method and route (the path without values).",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10},
		}, []string{"api", "method", "route"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_http_conflicts_total",
			Help: "HTTP requests refused with the status 409 or 412, by API and type of the error. The type is empty if the API has no types of errors.",
		}, []string{"api", "type"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_http_requests_in_flight",
			Help: "HTTP requests that this process is answering, by API.",
		}, []string{"api"}),
	}
	registry.MustRegister(m.durations, m.requests, m.routes, m.conflicts, m.inFlight)
	return m
}

// measure returns a handler that measures the requests to the handler h of an API.
func (m *httpMetrics) measure(api string, h http.Handler) http.Handler {
	inFlight := m.inFlight.WithLabelValues(api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		rec := &requestRecorder{ResponseWriter: w, status: http.StatusOK, route: unmatchedRoute}
		inFlight.Inc()
		defer inFlight.Dec()
		if m.traces.On() {
			traced, span := m.traces.StartRequest(r)
			defer func() {
				tracing.EndRequest(span, r.Method, "/"+api+rec.route, rec.status,
					rec.Header().Get("X-Openstack-Request-Id"))
			}()
			r = traced
		}
		h.ServeHTTP(rec, r)
		duration := time.Since(begin)
		m.log.write(r, api, rec, duration)
		took, method, code := duration.Seconds(), methodLabel(r.Method), strconv.Itoa(rec.status)
		m.requests.WithLabelValues(api, method, rec.route, code).Inc()
		if rec.Header().Get("Content-Type") !=
			"text/event-stream" { // a stream lasts as long as its client reads
			m.durations.WithLabelValues(api, method, code).Observe(took)
			m.routes.WithLabelValues(api, method, rec.route).Observe(took)
		}
		if rec.conflict != nil {
			m.conflicts.WithLabelValues(api, rec.conflict.Type).Inc()
		}
	})
}

// requestRecorder records the status code, the route, the caller and the conflict of a request.
type requestRecorder struct {
	http.ResponseWriter
	status   int
	route    string
	caller   identity.Caller // zero: the request has no valid credentials
	conflict *osapi.Error    // nil: no conflict
}

// WriteHeader implements http.ResponseWriter.
func (w *requestRecorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// RecordRoute implements osapi.RouteRecorder.
func (w *requestRecorder) RecordRoute(path string) { w.route = path }

// RecordCaller implements osapi.RouteRecorder.
func (w *requestRecorder) RecordCaller(c identity.Caller) { w.caller = c }

// RecordError implements osapi.RouteRecorder.
func (w *requestRecorder) RecordError(e *osapi.Error) {
	if e.Status == http.StatusConflict || e.Status == http.StatusPreconditionFailed {
		w.conflict = e
	}
}

// Unwrap returns the underlying http.ResponseWriter, so that http.ResponseController finds it.
func (w *requestRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// methodLabel returns the HTTP method as the value of a metric's label, or "other" for an unknown method.
// Without the value "other", the label of the metric could have any number of values, because a client can
// send any word as the HTTP method.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet,
		http.MethodHead,
		http.MethodPost,
		http.MethodPut,
		http.MethodPatch,
		http.MethodDelete:
		return m
	default:
		return "other"
	}
}
