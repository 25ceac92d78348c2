package diagnosis

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// listenAndAnswer starts a TCP server that reads a protocol header, writes the answer and closes the
// connection. It returns an AMQP URL of the server.
func listenAndAnswer(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, len(protocolHeader)))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return "amqp://guest:secret@" + l.Addr().String() + "/"
}

func TestDoctor_DistinguishesRabbitMQFromOtherServers(t *testing.T) {
	t.Parallel()
	const unreachable = "amqp://127.0.0.1:1/"
	broker := listenAndAnswer(t, "\x01\x00\x00\x00\x00\x01\xff\x00\x0a\x00\x0a\x00\x09")
	for name, c := range map[string]struct{ brokers, found, failure string }{
		"RabbitMQ":                    {brokers: broker, found: "speaks AMQP"},
		"second broker of a cluster":  {brokers: unreachable + "," + broker, found: "speaks AMQP"},
		"HTTP server":                 {brokers: listenAndAnswer(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), failure: "which is not AMQP"},
		"no server":                   {brokers: unreachable, failure: "cannot reach RabbitMQ"},
		"broker of an older protocol": {brokers: listenAndAnswer(t, "AMQP\x00\x00\x09\x01"), failure: "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newSession(t, time.Time{}, "BERTH_RABBITMQ_URL="+c.brokers)

			found, err := checkRabbitMQ(t.Context(), s)

			switch {
			case c.failure == "" && (err != nil || !strings.Contains(found, c.found)):
				t.Errorf("check RabbitMQ: got %q, error %v; want %q", found, err, c.found)
			case c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)):
				t.Errorf("check RabbitMQ: got error %v, want one with %q", err, c.failure)
			}
			if text := found + fmt.Sprint(err); strings.Contains(text, "secret") ||
				strings.Contains(text, "guest") {
				t.Errorf(
					"check RabbitMQ: got %q, error %v; want neither with the user or the password of the URL",
					found,
					err,
				)
			}
		})
	}
}
