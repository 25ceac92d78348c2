// Package rpc speaks with agents over RabbitMQ as a server of oslo.messaging does, so that Neutron's own DHCP and Open vSwitch
// agents do their part for berth's ports as they are. It decodes, asks store once, encodes; a call is acknowledged to the broker
// once its effect is committed.
package rpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/store"
)

// The topics on which agents call.
const (
	topicPlugin  = "q-plugin"
	topicReports = "q-reports-plugin"
)

// exchange is where topics are bound, under the name that Neutron's agents have for it.
const exchange = "neutron"

// prefetch is how many calls the broker hands to a process before it has acknowledged one.
const prefetch = 32

// Pauses before the next try to reach a broker that is away. Agents try every few seconds too, and wait a minute for an answer.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 3 * time.Second
)

// Options are what a server or a caster is made of.
type Options struct {
	Store   *store.Store
	Brokers []string              // URLs of one cluster
	Host    string                // of this process, for calls to it alone; a caster needs none
	TLS     *tls.Config           // for amqps; nil: the system's authorities are believed
	Metrics prometheus.Registerer // may be nil
}

// Desk is where calls are answered.
type Desk struct {
	Store *store.Store
}

// Server answers agents' calls.
type Server struct {
	options Options
	desk    *Desk
	counts  counts
	seen    *memory
	up      atomic.Bool
	next    int // the broker to try
}

// New is a server that does nothing before Run.
func NewServer(o Options) *Server {
	s := &Server{options: o, desk: &Desk{Store: o.Store}, seen: newMemory(remembered)}
	s.counts = newCounts(s.Connected)
	if o.Metrics != nil {
		s.counts.register(o.Metrics)
	}
	return s
}

// Connected tells whether the server is connected and consumes.
func (s *Server) Connected() bool { return s.up.Load() }

// again calls f until ctx ends, sooner after it held for long than after it failed at once, and never all processes together.
func again(ctx context.Context, what string, f func(context.Context) error) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		begin := time.Now()
		err := f(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > lastPause {
			pause = firstPause
		}
		slog.WarnContext(ctx, what, "error", err, "next", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// Run answers calls until ctx ends. When the broker is away it is tried again, for as long as it takes; calls that were
// not acknowledged are delivered again, to this process or another.
func (s *Server) Run(ctx context.Context) {
	again(ctx, "no connection with RabbitMQ: agents are not answered", func(ctx context.Context) error {
		defer s.up.Store(false)
		return s.serve(ctx)
	})
}

// heartbeat is how often the broker and we assure each other that we live.
const heartbeat = 10 * time.Second

// dial connects to the next of the brokers.
func dial(brokers []string, next int, name string, t *tls.Config) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	if t != nil {
		t = t.Clone() // it is told the name of one of several brokers
	}
	properties.SetClientConnectionName(name)
	conn, err := amqp.DialConfig(brokers[next%len(brokers)], amqp.Config{Heartbeat: heartbeat, Locale: "en_US", Properties: properties,
		TLSClientConfig: t, Dial: amqp.DefaultDial(heartbeat)})
	if err != nil {
		return nil, fmt.Errorf("connect with RabbitMQ: %w", err)
	}
	return conn, nil
}
