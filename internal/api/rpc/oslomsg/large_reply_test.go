package oslomsg

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A call whose reply is too large for RabbitMQ comes back after RabbitMQ has closed the channel.
func TestReplyLimits_LearnTheLimitOfRabbitMQ(t *testing.T) {
	t.Parallel()
	l := newReplyLimits()
	for _, c := range []struct {
		name string
		err  *amqp.Error
		want int64
	}{
		{"regular end", nil, MaxReply},
		{"another reason", &amqp.Error{Code: 406, Reason: "PRECONDITION_FAILED - unknown delivery tag 7"}, MaxReply},
		{"RabbitMQ accepts more", refusedSize(128 << 20), MaxReply},
		{"RabbitMQ accepts less", refusedSize(16 << 20), 16 << 20},
		{"another node accepts more", refusedSize(20 << 20), 16 << 20},
	} {
		if err := l.learnFrom(t.Context(), c.err); err == nil {
			t.Errorf("error of a channel that was closed (%s): got none", c.name)
		}
		if got := l.size.Load(); got != c.want {
			t.Errorf("largest reply after an error (%s): got %d bytes, want %d", c.name, got, c.want)
		}
	}
}

func refusedSize(limit int) *amqp.Error {
	return &amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - message size 173811840 " +
		"is larger than configured max size " + strconv.Itoa(limit)}
}

func TestReplyLimits_RepliesThatWaitToBeSentAgainNeedBoundedMemory(t *testing.T) {
	t.Parallel()
	l := newReplyLimits()
	if !l.keep(maxPendingBytes) || l.keep(1) {
		t.Errorf("keep a reply of %d bytes and another of 1 byte: want only the first", maxPendingBytes)
	}
	l.pending.Add(-maxPendingBytes)
	if !l.keep(1) {
		t.Error("keep a reply of 1 byte after the first was sent: want that it is kept")
	}
}

func TestLargeReply_OneOfAVirtualHostAndFewOfAProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		main := NewServer(ServerOptions{})
		hosts := make([]*Server, maxLargeReplies+1)
		for i := range hosts {
			hosts[i] = main.InVirtualHost(strconv.Itoa(i), nil, nil)
		}
		first := requestPlace(t, hosts[0])
		second := requestPlace(t, hosts[0])
		if !first.held || second.held {
			t.Errorf("two large replies in one virtual host: got places %t and %t, want only the first",
				first.held, second.held)
		}
		for _, s := range hosts[1:maxLargeReplies] {
			requestPlace(t, s)
		}
		last := requestPlace(t, hosts[maxLargeReplies])
		if last.held {
			t.Errorf("large reply number %d of the process: got a place, want none", maxLargeReplies+1)
		}
		first.release()
		synctest.Wait()
		if !last.held {
			t.Error("after the first reply was sent: the last call got no place")
		}
	})
}

// requestPlace starts a call of LargeReply and returns its place.
func requestPlace(t *testing.T, s *Server) *largeReply {
	t.Helper()
	place := &largeReply{server: s}
	go func() { _ = LargeReply(context.WithValue(t.Context(), largeReplyKey{}, place)) }()
	synctest.Wait()
	return place
}
