package oslomsg

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// Methods of AMQP: the class and the number in the class.
const (
	startOK         = 10<<16 | 11
	openVirtualHost = 10<<16 | 40
	openChannel     = 20<<16 | 10
	declareExchange = 40<<16 | 10
	publishMessage  = 60<<16 | 40
)

// methodAnswers are the methods that a silentBroker sends after it has received a method.
var methodAnswers = map[uint32][]byte{
	startOK:         {0, 10, 0, 30, 7, 255, 0, 2, 0, 0, 0, 10}, // tune: channels, frame size, heartbeat
	openVirtualHost: {0, 10, 0, 41, 0},
	openChannel:     {0, 20, 0, 11, 0, 0, 0, 0},
	85<<16 | 10:     {0, 85, 0, 11}, // confirm.select
	declareExchange: {0, 40, 0, 11},
}

// silentBroker is a server that speaks AMQP until it has received the methods silentAt. From then on it only
// answers heartbeats, so that the connection stays open.
type silentBroker struct {
	url      string
	silentAt []uint32 // received in this order; the broker answers all but the last
	silent   chan bool
}

func newSilentBroker(t *testing.T, silentAt ...uint32) *silentBroker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &silentBroker{"amqp://" + listener.Addr().String(), silentAt, make(chan bool, 1)}
	go func() {
		if conn, err := listener.Accept(); err == nil {
			b.serve(conn)
			_ = conn.Close()
		}
	}()
	return b
}

func (b *silentBroker) serve(conn net.Conn) {
	send := func(kind byte, channel, payload []byte) {
		frame := binary.BigEndian.AppendUint32(append([]byte{kind}, channel...), uint32(len(payload)))
		_, _ = conn.Write(append(append(frame, payload...), 0xce))
	}
	header := make([]byte, 8)
	if _, err := io.ReadFull(conn, header); err != nil {
		return
	}
	send(frameMethod, []byte{0, 0}, []byte("\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US"))
	waitFor := slices.Clone(b.silentAt)
	for {
		frame := make([]byte, frameStart)
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(frame[3:])+1)
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		if frame[0] != frameMethod {
			if frame[0] > frameBody {
				send(frame[0], frame[1:3], nil) // a heartbeat
			}
			continue
		}
		method := binary.BigEndian.Uint32(payload)
		if len(waitFor) > 0 && method == waitFor[0] {
			if waitFor = waitFor[1:]; len(waitFor) == 0 {
				b.silent <- true
			}
		}
		if answer := methodAnswers[method]; answer != nil && len(waitFor) > 0 {
			send(frameMethod, frame[1:3], answer)
		}
	}
}

// A virtual host whose agents have filled its queues does not answer, and yet its connection stays open.
func TestPublisher_NoCallOutlivesItsContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silentAt []uint32
		fanout   bool
	}{
		"handshake":             {silentAt: []uint32{startOK}},
		"open the virtual host": {silentAt: []uint32{openVirtualHost}},
		"open a channel":        {silentAt: []uint32{openChannel}},
		"declare the exchange":  {silentAt: []uint32{declareExchange}},
		"declare a fanout":      {silentAt: []uint32{declareExchange, declareExchange}, fanout: true},
		"confirm":               {silentAt: []uint32{publishMessage}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSilentBroker(t, c.silentAt...)
			p := NewPublisher(Broker{URLs: []string{b.url}}, "neutron", "test")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			published := inBackground(func() error {
				_, err := p.Publish(ctx, []Message{{Topic: "topic", Fanout: c.fanout, Body: []byte("{}")}})
				return err
			})
			result(t, "the broker becomes silent", b.silent)

			result(t, "Connected", inBackground(p.Connected))
			cancel()
			if err := result(t, "Publish", published); !errors.Is(err, context.Canceled) {
				t.Errorf("publish in a context that ends: got the error %v, want that of the context", err)
			}
			if p.Connected() {
				t.Error("after a call whose context has ended, the publisher is connected")
			}
			result(t, "Close", inBackground(func() bool { p.Close(); return true }))
		})
	}
}

func inBackground[T any](f func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- f() }()
	return done
}

// result returns the result of a call that must not wait for RabbitMQ.
func result[T any](t *testing.T, call string, done <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s waits for RabbitMQ, which does not answer", call)
	}
	return value
}
