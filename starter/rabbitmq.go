package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
)

// checkRabbitMQ looks whether one of the brokers speaks AMQP.
func checkRabbitMQ(ctx context.Context, s *session) (string, error) {
	if len(s.RabbitMQ) == 0 {
		return "", fmt.Errorf("%w: BERTH_RABBITMQ_URL is not set here", errUnset)
	}
	var errs []error
	for _, broker := range s.RabbitMQ {
		u, err := url.Parse(broker)
		if err == nil {
			err = greet(ctx, u, s.RabbitMQCA)
		}
		if err == nil {
			return u.Redacted() + " speaks AMQP", nil
		}
		errs = append(errs, err)
	}
	return "", away("RabbitMQ", "What agents are told is kept until it is back; is BERTH_RABBITMQ_URL right, and BERTH_RABBITMQ_CA_FILE for amqps?", errors.Join(errs...))
}

// The greeting of AMQP 0-9-1, and the length of a frame's head with the two numbers of its method.
const (
	greeting  = "AMQP\x00\x00\x09\x01"
	frameHead = 11
)

// The answer to it begins with a frame of a method on channel 0; behind its length comes the method, connection.start.
const (
	frameStart  = "\x01\x00\x00"
	methodStart = "\x00\x0a\x00\x0a"
)

// greet greets a broker as a client does.
func greet(ctx context.Context, u *url.URL, ca string) error {
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
		transport, err := trusting(ca)
		if err != nil {
			return err
		}
		trust := transport.TLSClientConfig
		if trust == nil {
			trust = &tls.Config{}
		}
		trust.ServerName = u.Hostname()
		conn = tls.Client(conn, trust)
	}
	if _, err := io.WriteString(conn, greeting); err != nil {
		return err
	}
	answer := make([]byte, frameHead)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("%s does not answer a greeting: %w", address, err)
	}
	if said := string(answer); !strings.HasPrefix(said, frameStart) || !strings.HasSuffix(said, methodStart) {
		return fmt.Errorf("%s answers a greeting with %q, which is not AMQP", address, answer)
	}
	return nil
}
