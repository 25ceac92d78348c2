package rpc

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Why a message came to nothing.
const (
	malformed      = "malformed"      // no envelope, or no call in it
	duplicate      = "duplicate"      // its _unique_id has been seen
	unwanted       = "unwanted"       // nobody takes the answer
	unanswered     = "unanswered"     // the connection was lost before the answer was sent
	unacknowledged = "unacknowledged" // the connection was lost before it could be acknowledged; it comes again
)

// counts are what operators see of the calls.
type counts struct {
	calls, drops *prometheus.CounterVec
	connected    prometheus.GaugeFunc
}

func newCounts(connected func() bool) counts {
	return counts{
		connected: connection("calls", connected),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_rpc_calls_total", Help: "Calls of agents over RabbitMQ, by method and by the class of the failure, if it failed."},
			[]string{"method", "failure"}),
		drops: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_rpc_dropped_total", Help: "Messages that came to nothing."}, []string{"reason"}),
	}
}

func (c counts) register(r prometheus.Registerer) { r.MustRegister(c.calls, c.drops, c.connected) }

// castCounts are what operators see of what agents are told.
type castCounts struct {
	casts     *prometheus.CounterVec
	retold    prometheus.Counter
	connected prometheus.GaugeFunc
}

func newCastCounts(connected func() bool) castCounts {
	return castCounts{
		casts:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_rpc_casts_total", Help: "What agents were told over RabbitMQ, by what it was about and what came of it."}, []string{"about", "outcome"}),
		retold:    prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_rpc_retold_total", Help: "How often agents were told again what RabbitMQ may have lost."}),
		connected: connection("casts", connected),
	}
}

func (c castCounts) register(r prometheus.Registerer) { r.MustRegister(c.casts, c.retold, c.connected) }

// connection is 1 while there is one with RabbitMQ.
func connection(purpose string, there func() bool) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "berth_rpc_connected", Help: "1 while this process is connected with RabbitMQ.",
		ConstLabels: prometheus.Labels{"for": purpose}}, func() float64 {
		if there() {
			return 1
		}
		return 0
	})
}

func (c counts) drop(reason string) { c.drops.WithLabelValues(reason).Inc() }

func (c counts) call(name string, err error) {
	class := ""
	if err != nil {
		class = failureOf(err).Class
	}
	if class == "NoSuchMethod" || class == "UnsupportedVersion" {
		name = "" // strangers must not make as many series as they like
	}
	c.calls.WithLabelValues(name, class).Inc()
}

// remembered is how many messages are remembered by their _unique_id.
const remembered = 4096

// memory tells the first of several messages of the same ID from the others, among the last so many.
type memory struct {
	sync.Mutex
	ids  map[string]bool
	ring []string
	next int
}

func newMemory(size int) *memory { return &memory{ids: map[string]bool{}, ring: make([]string, size)} }

// first tells whether the ID is new. A message without one always is.
func (m *memory) first(id string) bool {
	if id == "" || len(id) > maxName {
		return true
	}
	m.Lock()
	defer m.Unlock()
	if m.ids[id] {
		return false
	}
	delete(m.ids, m.ring[m.next])
	m.ring[m.next], m.ids[id] = id, true
	m.next = (m.next + 1) % len(m.ring)
	return true
}
