package oslomsg

import "github.com/prometheus/client_golang/prometheus"

// Reasons why the server dropped a message. Each reason is a label value of the metric
// berth_rpc_dropped_total.
const (
	dropMalformed  = "malformed"  // the body is not an envelope with a call
	dropDuplicate  = "duplicate"  // a message with this _unique_id was handled before
	dropUnroutable = "unwanted"   // the reply queue does not exist
	dropUnanswered = "unanswered" // the connection ended before the reply was sent
	// the connection ended before the acknowledgement; RabbitMQ delivers the message again
	dropUnacknowledged = "unacknowledged"
)

// serverMetrics are the metrics of a Server.
type serverMetrics struct {
	calls, drops *prometheus.CounterVec
}

func newServerMetrics() serverMetrics {
	return serverMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_rpc_calls_total",
			Help: "RPC calls of agents over RabbitMQ, by method and by exception class (empty: the call succeeded)."}, []string{"method", "failure"}),
		drops: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "berth_rpc_dropped_total", Help: "RPC messages dropped, by reason."},
			[]string{"reason"},
		),
	}
}

func (m serverMetrics) register(r prometheus.Registerer) {
	r.MustRegister(m.calls, m.drops)
}

func (m serverMetrics) countDrop(reason string) { m.drops.WithLabelValues(reason).Inc() }

// countCall counts a call; the method and the failure class are labels of the metric. countCall leaves the
// label of the method empty for an unknown method or version, so that clients cannot create an unlimited
// number of time series.
func (m serverMetrics) countCall(method string, failure *Failure) {
	class := ""
	if failure != nil {
		class = failure.Class
	}
	if class == "NoSuchMethod" || class == "UnsupportedVersion" {
		method = ""
	}
	m.calls.WithLabelValues(method, class).Inc()
}

// ConnectedGauge returns a metric that is 1 while `connected` returns true, and otherwise 0. The parameter
// `purpose` is a label of the metric: what the process uses the RabbitMQ connection for.
func ConnectedGauge(purpose string, connected func() bool) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{
			Name:        "berth_rpc_connected",
			Help:        "1 while this process is connected to RabbitMQ, by purpose of the connection.",
			ConstLabels: prometheus.Labels{"for": purpose},
		},
		func() float64 {
			if connected() {
				return 1
			}
			return 0
		},
	)
}
