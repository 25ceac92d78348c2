package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/tracing"
)

// serviceMetrics measures the HTTP requests of this process to other services.
type serviceMetrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newServiceMetrics(registry prometheus.Registerer) *serviceMetrics {
	m := &serviceMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_service_requests_total",
			Help: "HTTP requests of this process to other services, by service, method and status code; the code `none` means that no answer came.",
		}, []string{"service", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_service_request_duration_seconds",
			Help:    "Time from the start of a request to another service until the header of the answer, in seconds, by service.",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 30},
		}, []string{"service"}),
	}
	registry.MustRegister(m.requests, m.durations)
	return m
}

// measure returns a function that adds the measurement of the requests to a service to an HTTP transport.
func (m *serviceMetrics) measure(service string) func(http.RoundTripper) http.RoundTripper {
	return m.measureBy(func(*http.Request) string { return service })
}

// measureBy does the same as measure for a transport to several services; serviceOf returns the service of a
// request.
func (m *serviceMetrics) measureBy(
	serviceOf func(*http.Request) string,
) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		next = tracing.Transport(next, serviceOf)
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			begin, code, service := time.Now(), "none", serviceOf(r)
			answer, err := next.RoundTrip(r)
			if err == nil {
				code = strconv.Itoa(answer.StatusCode)
			}
			m.durations.WithLabelValues(service).Observe(time.Since(begin).Seconds())
			m.requests.WithLabelValues(service, methodLabel(r.Method), code).Inc()
			return answer, err
		})
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
