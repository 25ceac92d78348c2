// Package rpc answers the RPC calls of Neutron's DHCP and Open vSwitch agents over RabbitMQ and sends them notifications, so that
// unmodified agents configure berth's ports. A method decodes its arguments, calls the store once and encodes the result; the
// call is acknowledged after the transaction is committed. The wire protocol is in the package oslomsg.
package rpc

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/networkstore"
)

// The topics on which agents send calls.
const (
	topicPlugin  = "q-plugin"
	topicReports = "q-reports-plugin"
)

// exchange is the control_exchange of Neutron's agents.
const exchange = "neutron"

// Options configure a Server or a Publisher.
type Options struct {
	Store   *networkstore.Store
	Brokers []string              // URLs of the nodes of one RabbitMQ cluster
	Host    string                // name of this process for calls to topic.host; a Publisher needs none
	TLS     *tls.Config           // for amqps URLs; nil: the system's certificate authorities
	Metrics prometheus.Registerer // may be nil
}

func (o Options) broker() oslomsg.Broker { return oslomsg.Broker{URLs: o.Brokers, TLS: o.TLS} }

// Server answers agents' calls.
type Server = oslomsg.Server

// NewServer returns a server that connects when its Run is called.
func NewServer(o Options) *Server {
	h := &handlers{Store: o.Store}
	return oslomsg.NewServer(oslomsg.ServerOptions{Broker: o.broker(), Exchange: exchange, Topics: []string{topicPlugin, topicReports},
		Host: o.Host, Endpoints: h.endpoints(), ErrorToFailure: failureOf, InternalFailure: internalFailure, Metrics: o.Metrics})
}

// TLSConfig returns a configuration that trusts the certificate authorities in a PEM file. Without a file it returns nil, which
// means the system's authorities.
func TLSConfig(caFile string) (*tls.Config, error) { return oslomsg.TLSConfig(caFile) }
