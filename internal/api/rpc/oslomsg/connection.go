package oslomsg

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// heartbeatInterval is the interval of AMQP heartbeats. heartbeatInterval is also the maximum duration of a
// connection attempt.
const heartbeatInterval = 10 * time.Second

// closeTimeout is how long RabbitMQ may take to confirm the end of a connection.
const closeTimeout = time.Second

// Pauses between attempts to reconnect. The pauses between attempts to reconnect are short, because agents
// wait at most 60 seconds for a reply.
const (
	firstReconnectPause = 200 * time.Millisecond
	maxReconnectPause   = 3 * time.Second
)

// Broker holds the addresses of one RabbitMQ cluster.
type Broker struct {
	URLs        []string    // of the cluster's nodes
	VirtualHost string      // empty: the virtual host in the URL
	TLS         *tls.Config // for amqps URLs; nil: the system's certificate authorities
	next        int         // index of the URL to try next
}

// HasVirtualHost reports whether one of the broker's URLs names the virtual host.
func (b Broker) HasVirtualHost(name string) bool {
	return slices.ContainsFunc(b.URLs, func(url string) bool {
		u, err := amqp.ParseURI(url)
		return err == nil && u.Vhost == name
	})
}

// CheckVirtualHost connects to a virtual host on one of the cluster's nodes and closes the connection.
func (b Broker) CheckVirtualHost(name string) error {
	b.VirtualHost = name
	var errs []error
	for range b.URLs {
		conn, err := b.dial(context.Background(), "berth check")
		if err == nil {
			return conn.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// connection is a connection to RabbitMQ.
type connection struct {
	*amqp.Connection
	socket net.Conn // below TLS
}

// endWith closes the socket when ctx ends, and so ends the calls of the amqp library, which know no context.
// The caller calls the returned function after the calls of the library.
func (c *connection) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.socket.Close() })
}

// close closes the connection. If RabbitMQ does not confirm the end in closeTimeout, close returns
// nevertheless.
func (c *connection) close() {
	timer := time.AfterFunc(closeTimeout, func() { _ = c.socket.Close() })
	defer timer.Stop()
	_ = c.Close()
}

// dial connects to the next node of the RabbitMQ cluster, or returns an error when ctx ends. RabbitMQ shows
// the parameter `name` as the name of the connection in its list of connections.
func (b *Broker) dial(ctx context.Context, name string) (*connection, error) {
	url := b.URLs[b.next%len(b.URLs)]
	b.next++
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	target, err := amqp.ParseURI(url)
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	if target.Scheme == "amqps" { // for the library, which would begin TLS on the guardedConn
		url = "amqp" + url[len("amqps"):]
	}
	var c connection
	stop := func() bool { return false }
	c.Connection, err = amqp.DialConfig(url, amqp.Config{
		Vhost:      b.VirtualHost,
		Heartbeat:  heartbeatInterval,
		Locale:     "en_US",
		Properties: properties,
		Dial: func(string, string) (net.Conn, error) {
			if err := c.open(ctx, target); err != nil {
				return nil, err
			}
			stop = c.endWith(ctx)
			return b.guard(ctx, c.socket, target)
		},
	})
	stop()
	if err != nil && c.socket != nil {
		_ = c.socket.Close()
	}
	if err != nil && b.VirtualHost != "" {
		return nil, fmt.Errorf("connect to the virtual host %s of RabbitMQ: %w", b.VirtualHost, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	return &c, nil
}

// open opens the socket to a node of the cluster. The deadline of the socket is that of the handshakes; the
// amqp library removes it after them.
func (c *connection) open(ctx context.Context, node amqp.URI) (err error) {
	dialer := net.Dialer{Timeout: heartbeatInterval}
	c.socket, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(node.Host, strconv.Itoa(node.Port)))
	if err != nil {
		return err
	}
	return c.socket.SetDeadline(time.Now().Add(heartbeatInterval))
}

// guard returns a guardedConn on a socket to a node of the cluster, over TLS if the node's URL says so. guard
// closes the socket if it returns an error.
func (b *Broker) guard(ctx context.Context, conn net.Conn, node amqp.URI) (net.Conn, error) {
	if node.Scheme != "amqps" {
		return newGuardedConn(conn), nil
	}
	config, err := b.tlsConfig(node)
	if err == nil {
		secured := tls.Client(conn, config)
		if err = secured.HandshakeContext(ctx); err == nil {
			return newGuardedConn(secured), nil
		}
	}
	_ = conn.Close()
	return nil, err
}

// tlsConfig returns the TLS configuration for a connection to a node. Without a configuration of the Broker,
// the parameters of the node's URL decide, as for the amqp library.
func (b *Broker) tlsConfig(node amqp.URI) (*tls.Config, error) {
	if b.TLS != nil {
		config := b.TLS.Clone()
		config.ServerName = node.Host
		return config, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if trusted, err := TLSConfig(node.CACertFile); err != nil {
		return nil, err
	} else if trusted != nil {
		config = trusted
	}
	config.ServerName = cmp.Or(node.ServerName, node.Host)
	if node.CertFile == "" || node.KeyFile == "" {
		return config, nil
	}
	own, err := tls.LoadX509KeyPair(node.CertFile, node.KeyFile)
	config.Certificates = []tls.Certificate{own}
	return config, err
}

// KeepConnected calls the function `connect` again and again until ctx ends. The function `connect` runs as
// long as its connection works, and returns an error when the connection fails or ends. When the function
// `connect` returns, KeepConnected logs `message` with the error, and pauses before the next call. The pause
// of KeepConnected becomes longer while several connections in succession fail quickly. The pause of
// KeepConnected has a random part, so that several processes do not reconnect at the same moment.
func KeepConnected(ctx context.Context, message string, connect func(context.Context) error) {
	for pause := firstReconnectPause; ctx.Err() == nil; pause = min(2*pause, maxReconnectPause) {
		begin := time.Now()
		err := connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > maxReconnectPause {
			pause = firstReconnectPause
		}
		slog.WarnContext(ctx, message, "error", err, "retry_in", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// TLSConfig returns a TLS configuration that trusts the certificate authorities in a PEM file. If the
// parameter `caFile` is empty, TLSConfig returns nil, so that Go's TLS client trusts the system's certificate
// authorities.
func TLSConfig(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate", caFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// closeError returns the error with which an AMQP connection or channel ended. If the connection or channel
// was closed in the regular way, the amqp library reports nil, and closeError returns amqp.ErrClosed.
func closeError(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return err
}

// newPublishing returns an AMQP message with the given body and with the properties that oslo.messaging sets.
// The message's timestamp is the parameter `firstSent`, the time of the first attempt to send the body. The
// table of headers must not be empty: the amqp library omits an empty table, and oslo.messaging 14.9 drops
// its connection when a message has no table.
func newPublishing(body []byte, firstSent time.Time) amqp.Publishing {
	return amqp.Publishing{
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		DeliveryMode:    amqp.Persistent,
		Headers:         amqp.Table{"sender": "berth"},
		Body:            body,
		Timestamp:       firstSent,
	}
}
