package diagnosis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"berth/starter/cli"
)

// checkRabbitMQ checks that one of the RabbitMQ brokers answers with AMQP.
func checkRabbitMQ(ctx context.Context, s *cli.Session) (string, error) {
	if len(s.RabbitMQ) == 0 {
		return "", fmt.Errorf("%w: BERTH_RABBITMQ_URL is not set", errNotConfigured)
	}
	var errs []error
	for _, broker := range s.RabbitMQ {
		u, err := url.Parse(broker)
		if err == nil {
			err = handshake(ctx, u, s.RabbitMQCAFile)
		}
		if err == nil {
			u.User = nil
			return u.String() + " speaks AMQP", nil
		}
		errs = append(errs, err)
	}
	return "", cli.Unavailable(
		"RabbitMQ",
		"Agent notifications wait until it is back. Are BERTH_RABBITMQ_URL and, for amqps, BERTH_RABBITMQ_CA_FILE correct?",
		errors.Join(errs...),
	)
}

// protocolHeader is the header of AMQP 0-9-1 that a client sends first. The other constant is the length of a
// frame header with class ID and method ID (AMQP 0-9-1 specification, 4.2.2 and 4.2.4).
const (
	protocolHeader  = "AMQP\x00\x00\x09\x01"
	frameHeadLength = 11
)

// The broker answers the protocol header with a method frame on channel 0 that contains the method
// connection.start.
const (
	methodFrameStart      = "\x01\x00\x00"
	connectionStartMethod = "\x00\x0a\x00\x0a"
)

// handshake sends the protocol header to a broker and checks the first bytes of the answer. The broker sends
// this answer before a login.
func handshake(ctx context.Context, u *url.URL, ca string) error {
	port := map[string]string{"amqp": "5672", "amqps": "5671"}[u.Scheme]
	if p := u.Port(); p != "" {
		port = p
	}
	address := net.JoinHostPort(u.Hostname(), port)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if u.Scheme == "amqps" {
		transport, err := transportWithCA(ca)
		if err != nil {
			return err
		}
		tlsConfig := transport.TLSClientConfig
		if tlsConfig == nil {
			tlsConfig = &tls.Config{}
		}
		tlsConfig.ServerName = u.Hostname()
		conn = tls.Client(conn, tlsConfig)
	}
	if _, err := io.WriteString(conn, protocolHeader); err != nil {
		return err
	}
	answer := make([]byte, frameHeadLength)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("%s does not answer the AMQP protocol header: %w", address, err)
	}
	if reply := string(answer); !strings.HasPrefix(reply, methodFrameStart) ||
		!strings.HasSuffix(reply, connectionStartMethod) {
		return fmt.Errorf("%s answers with %q, which is not AMQP", address, answer)
	}
	return nil
}
