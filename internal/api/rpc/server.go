// Package rpc answers the RPC calls of Neutron's DHCP and Open vSwitch agents over RabbitMQ and sends notifications to these agents, so
// that unmodified agents configure berth's ports. Each RPC method decodes its arguments, calls the store and encodes the result. The server
// acknowledges the message of an RPC call after the store has committed the transaction of the call. The package oslomsg implements the
// protocol of oslo.messaging.
package rpc

import (
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/networkstore"
	"berth/internal/store/notificationstore"
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
	Store         *networkstore.Store
	Notifications *notificationstore.Store // needed only by a Publisher
	Brokers       []string                 // URLs of the nodes of one RabbitMQ cluster
	Host          string                   // host of this process, which also takes calls to the topic TOPIC.HOST; a Publisher needs none
	MaxCallTime   time.Duration            // maximum time for a call; 0: one minute
	TLS           *tls.Config              // for amqps URLs; nil: the system's certificate authorities
	Metrics       prometheus.Registerer    // may be nil
}

func (o Options) broker() oslomsg.Broker { return oslomsg.Broker{URLs: o.Brokers, TLS: o.TLS} }

// Server answers the RPC calls of agents.
type Server = oslomsg.Server

// NewServer returns a server that connects to RabbitMQ when Run is called.
func NewServer(o Options) *Server {
	h := &handlers{Store: o.Store}
	return oslomsg.NewServer(oslomsg.ServerOptions{Broker: o.broker(), Exchange: exchange, Topics: []string{topicPlugin, topicReports, topicL3},
		Host: o.Host, Endpoints: h.endpoints(), ErrorToFailure: failureOf, MaxCallTime: o.MaxCallTime, InternalFailure: internalFailure,
		Metrics: o.Metrics})
}

// TLSConfig returns a TLS configuration that trusts the certificate authorities in a PEM file. If `caFile` is empty, TLSConfig returns nil,
// and a connection with a nil configuration trusts the certificate authorities of the system.
func TLSConfig(caFile string) (*tls.Config, error) { return oslomsg.TLSConfig(caFile) }
