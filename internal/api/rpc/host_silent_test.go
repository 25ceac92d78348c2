package rpc

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/agentstore"
)

// newSilentHost returns the publisher for a virtual host that accepts connections and does not answer. The
// function `accepted` is called for each connection.
func newSilentHost(t *testing.T, accepted func()) *hostPublisher {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			accepted()
		}
	}()
	broker := oslomsg.Broker{URLs: []string{"amqp://" + listener.Addr().String()}}
	return &hostPublisher{
		VirtualHost: agentstore.VirtualHost{ID: uuid.New(), Name: "silent"},
		wire:        oslomsg.NewPublisher(broker, exchange, "test"),
	}
}

// The attempt to publish ends while it waits for the virtual host. If the next attempt waited again, the
// agents of one host could keep notifications from all hosts.
func TestHostPublisher_AnAttemptThatEndsIsAMiss(t *testing.T) {
	t.Parallel()
	attempt, end := context.WithCancel(t.Context())
	defer end()
	p := newSilentHost(t, end)
	p.reconnectedAt = time.Now().Add(-time.Hour)
	messages := []oslomsg.Message{{Topic: "topic", Body: []byte("{}")}}

	if err := p.publish(attempt, messages); !errors.Is(err, context.Canceled) {
		t.Errorf("publish in a virtual host that does not answer: got the error %v, want the end of the attempt", err)
	}
	if !p.misses() {
		t.Error("after an attempt that has ended, the agents of the virtual host miss nothing")
	}
	if err := p.publish(t.Context(), messages); err != nil {
		t.Errorf("publish again: got the error %v, want that the virtual host is left out", err)
	}
	if p.pause != virtualHostPoll {
		t.Errorf("a connection for an hour in which RabbitMQ has confirmed nothing: got the pause %s, want %s",
			p.pause, virtualHostPoll)
	}
}

// A virtual host that is unusable again and again must not delay others longer than one that is slow.
func TestPublisher_MeasuresAlsoTheWaitForAVirtualHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	attempt, end := context.WithCancel(t.Context())
	defer end()
	hosts := []*hostPublisher{newSilentHost(t, end)}
	p := NewPublisher(Options{})
	p.confirmTime = func(string, time.Time) time.Duration { return hostPublishTimeout }
	messages := []addressedMessage{{Message: oslomsg.Message{Topic: "topic"}, to: everyone}}

	times, err := p.publishToHosts(attempt, hosts, messages, nil)
	if !errors.Is(err, context.Canceled) || times[0] != hostPublishTimeout {
		t.Errorf("publish in a virtual host that does not answer: got the time %s, error %v; want %s and the end of the attempt",
			times[0], err, hostPublishTimeout)
	}
	times, err = p.publishToHosts(t.Context(), hosts, messages, nil)
	if err != nil || times[0] != 0 {
		t.Errorf("publish again: got the time %s, error %v; want that the virtual host is left out", times[0], err)
	}
}

func TestHostPublisher_AnAttemptThatHasEndedBeforeIsNoMiss(t *testing.T) {
	t.Parallel()
	p := newSilentHost(t, func() {})
	attempt, end := context.WithCancel(t.Context())
	end()
	if err := p.publish(attempt, []oslomsg.Message{{Topic: "topic"}}); err == nil || p.misses() {
		t.Errorf("publish in an attempt that has ended: got the error %v and a miss: %t; want an error and no miss",
			err, p.misses())
	}
}

// An administrator removes the registration of a virtual host that does not answer.
func TestHostPublishers_ARemovedVirtualHostDelaysNoOther(t *testing.T) {
	t.Parallel()
	connecting := make(chan bool, 1)
	removed := newSilentHost(t, func() { connecting <- true })
	hosts := hostPublishers{all: map[uuid.UUID]*hostPublisher{removed.ID: removed}}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	done := make(chan error, 1)
	go func() { done <- removed.wire.RequireConnection(ctx) }()
	<-connecting

	hosts.follow(Options{}, nil)

	end()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("remove a virtual host while a connection to it begins: the attempt ended before with %v", err)
	}
	hosts.closing.Wait()
}
