package oslomsg

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// heartbeatInterval is the interval of AMQP heartbeats. heartbeatInterval is also the maximum duration of a connection attempt.
const heartbeatInterval = 10 * time.Second

// Pauses between attempts to reconnect. The pauses are short, because agents wait at most 60 seconds for a reply.
const (
	firstReconnectPause = 200 * time.Millisecond
	maxReconnectPause   = 3 * time.Second
)

// Broker holds the addresses of one RabbitMQ cluster.
type Broker struct {
	URLs []string    // of the cluster's nodes
	TLS  *tls.Config // for amqps URLs; nil: the system's certificate authorities
	next int         // index of the URL to try next
}

// dial connects to the next node of the RabbitMQ cluster. RabbitMQ shows the name in its list of connections.
func (b *Broker) dial(name string) (*amqp.Connection, error) {
	url := b.URLs[b.next%len(b.URLs)]
	b.next++
	config := b.TLS
	if config != nil {
		config = config.Clone() // DialConfig writes the node's name into it
	}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	conn, err := amqp.DialConfig(url, amqp.Config{Heartbeat: heartbeatInterval, Locale: "en_US", Properties: properties,
		TLSClientConfig: config, Dial: amqp.DefaultDial(heartbeatInterval)})
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	return conn, nil
}

// KeepConnected calls `connect` again and again until ctx ends. `connect` returns an error when its connection fails or ends. KeepConnected
// then logs the message with the error, and pauses. The pause grows while attempts fail quickly. The pause is random, so that processes do
// not reconnect at the same moment.
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

// TLSConfig returns a TLS configuration that trusts the certificate authorities in a PEM file. If `caFile` is empty TLSConfig returns nil,
// which means the system's certificate authorities.
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

// closeError returns the reason why a connection or channel ended. For an orderly close, the amqp library reports nil.
func closeError(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return err
}

// newPublishing returns an AMQP message with this body, with the properties that oslo.messaging sets, and with the time at which the body
// was first sent.
func newPublishing(body []byte, firstSent time.Time) amqp.Publishing {
	return amqp.Publishing{ContentType: "application/json", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent, Headers: amqp.Table{},
		Body: body, Timestamp: firstSent}
}
