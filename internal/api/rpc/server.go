// Package rpc answers the RPC calls of Neutron's DHCP and Open vSwitch agents over RabbitMQ and sends
// notifications to these agents, so that unmodified agents configure berth's ports. Each RPC method decodes
// its arguments, calls the store and encodes the result. The server acknowledges the message of an RPC call
// after the store has committed the transaction of the call. The package oslomsg implements the protocol of
// oslo.messaging.
package rpc

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/agentstore"
	"berth/internal/store/notificationstore"
	"berth/internal/store/portstore"
)

// The RabbitMQ topics to which agents send their RPC calls.
const (
	topicPlugin  = "q-plugin"
	topicReports = "q-reports-plugin"
)

// exchange is the control_exchange of Neutron's agents.
const exchange = "neutron"

// Options configure a Server or a Publisher.
type Options struct {
	Store         *portstore.Store
	Agents        *agentstore.Store        // has the registered virtual hosts
	Notifications *notificationstore.Store // needed only by a Publisher
	Brokers       []string                 // URLs of the nodes of one RabbitMQ cluster
	// host of this process, which also takes calls to the topic TOPIC.HOST; a Publisher needs none
	Host string
	// Identities requires that each host has a registered virtual host: nothing is received from or sent to
	// agents in the virtual host of the brokers' URLs.
	Identities bool
	// HostRate is the maximum number of messages per second that the server takes from the virtual host of
	// one host, after HostBurst messages at once; 0: no limit. A message with reports about more than
	// network.ReportsPerRequest ports counts as several messages.
	HostRate    float64
	HostBurst   int
	MaxCallTime time.Duration         // maximum time for a call; 0: one minute
	TLS         *tls.Config           // for amqps URLs; nil: the system's certificate authorities
	Metrics     prometheus.Registerer // may be nil
	Observe     oslomsg.Observer      // sees each call; may be nil; a Publisher needs none
}

// limiter returns a new limit for the messages of one host.
func (o Options) limiter() *rate.Limiter {
	if o.HostRate == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(o.HostRate), o.HostBurst)
}

func (o Options) broker() oslomsg.Broker { return oslomsg.Broker{URLs: o.Brokers, TLS: o.TLS} }

// Server answers the RPC calls of agents in the virtual host of the brokers' URLs, where any host may send,
// and in each registered virtual host, where only one host may send.
type Server struct {
	options  Options
	main     *oslomsg.Server
	refusals *prometheus.CounterVec
	delayed  prometheus.Counter // synchronizations
	mu       sync.Mutex
	listed   bool // the registered virtual hosts have been read
	senders  map[uuid.UUID]senderServer
}

// senderServer answers the calls in a registered virtual host.
type senderServer struct {
	*oslomsg.Server
	name string // of the virtual host
	stop context.CancelFunc
}

// NewServer returns a server that connects to RabbitMQ when Run is called.
func NewServer(o Options) *Server {
	h := &handlers{Store: o.Store}
	s := &Server{
		options:  o,
		refusals: newRefusals(),
		delayed:  newDelayedSynchronizations(),
		senders:  map[uuid.UUID]senderServer{},
		main: oslomsg.NewServer(oslomsg.ServerOptions{
			Broker:          o.broker(),
			Exchange:        exchange,
			Topics:          []string{topicPlugin, topicReports, topicL3},
			Host:            o.Host,
			Endpoints:       h.endpoints(),
			ErrorToFailure:  failureOf,
			MaxCallTime:     o.MaxCallTime,
			InternalFailure: internalFailure,
			Metrics:         o.Metrics,
			Observe:         o.Observe,
		}),
	}
	if o.Metrics != nil {
		o.Metrics.MustRegister(s.refusals, s.delayed, oslomsg.ConnectedGauge("calls", s.Connected))
	}
	return s
}

// Run answers calls until ctx ends, and reconnects after each lost connection.
func (s *Server) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if !s.options.Identities {
		running.Go(func() { s.main.Run(ctx) })
	}
	pollVirtualHosts(ctx, s.options,
		func(registered []agentstore.VirtualHost) { s.follow(ctx, &running, registered) })
}

// follow starts a server for each registered virtual host that has none, and stops the servers for removed
// registrations.
func (s *Server) follow(ctx context.Context, running *sync.WaitGroup, registered []agentstore.VirtualHost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = true
	left := maps.Clone(s.senders)
	for _, v := range registered {
		delete(left, v.ID)
		if _, ok := s.senders[v.ID]; ok {
			continue
		}
		limit := s.options.limiter()
		h := &handlers{
			Store: s.options.Store,
			sender: &sender{
				VirtualHost:      v,
				refusals:         s.refusals,
				synchronizations: newSynchronizationLimit(s.delayed),
				tunnelChanges:    newTunnelLimit(),
				messages:         limit,
			},
		}
		server := s.main.InVirtualHost(v.Name, h.endpoints(), limit)
		serverCtx, stop := context.WithCancel(ctx)
		s.senders[v.ID] = senderServer{server, v.Name, stop}
		running.Go(func() { server.Run(serverCtx) })
	}
	for id, removed := range left {
		removed.stop()
		delete(s.senders, id)
	}
}

// Connected reports whether the server takes calls in the virtual host of the brokers' URLs. If identities
// are required, Connected reports whether the server takes calls in at least one of the registered virtual
// hosts.
func (s *Server) Connected() bool {
	if !s.options.Identities {
		return s.main.Connected()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.senders {
		if server.Connected() {
			return true
		}
	}
	return s.listed && len(s.senders) == 0
}

// Unreachable returns the names of the registered virtual hosts in which the server does not take calls.
func (s *Server) Unreachable() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.senders {
		if !server.Connected() {
			names = append(names, server.name)
		}
	}
	slices.Sort(names)
	return names
}

// TLSConfig returns a TLS configuration that trusts the certificate authorities in a PEM file. If `caFile` is
// empty, TLSConfig returns nil, and a connection with a nil configuration trusts the certificate authorities
// of the system.
func TLSConfig(caFile string) (*tls.Config, error) { return oslomsg.TLSConfig(caFile) }
