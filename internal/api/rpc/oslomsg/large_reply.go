package oslomsg

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/semaphore"
)

// MaxReply is the largest body of a reply that a server sends, in bytes.
const MaxReply = 32 << 20

// Limits of the memory for large replies in a process. A reply needs several times its size while the server
// encodes it.
const (
	maxLargeReplies = 4        // calls that build a large reply at the same time
	maxPendingBytes = 16 << 20 // of the replies that wait to be sent again
)

// replyLimits are the limits of replies that all servers of a process share.
type replyLimits struct {
	size    atomic.Int64 // the largest body of a reply that RabbitMQ accepts, as far as the server knows
	pending atomic.Int64 // bytes of the replies that wait to be sent again
	large   *semaphore.Weighted
}

func newReplyLimits() *replyLimits {
	l := &replyLimits{large: semaphore.NewWeighted(maxLargeReplies)}
	l.size.Store(MaxReply)
	return l
}

// keep reserves memory for a reply that waits to be sent again. keep returns false if too many bytes wait.
func (l *replyLimits) keep(size int64) bool {
	if l.pending.Add(size) > maxPendingBytes {
		l.pending.Add(-size)
		return false
	}
	return true
}

// largeReply is the place of a call among those that build a large reply.
type largeReply struct {
	server *Server
	held   bool
}

type largeReplyKey struct{}

// LargeReply waits until the call may build a large reply: few calls of a process and one call of a virtual
// host do so at the same time. The place is free again after the server has sent the reply.
func LargeReply(ctx context.Context) error {
	place, ok := ctx.Value(largeReplyKey{}).(*largeReply)
	if !ok || place.held {
		return nil
	}
	if err := place.server.large.Acquire(ctx, 1); err != nil {
		return err
	}
	if err := place.server.limits.large.Acquire(ctx, 1); err != nil {
		place.server.large.Release(1)
		return err
	}
	place.held = true
	return nil
}

func (p *largeReply) release() {
	if p.held {
		p.server.limits.large.Release(1)
		p.server.large.Release(1)
		p.held = false
	}
}

// tooLarge is the reason with which RabbitMQ closes a channel after a message that is larger than its setting
// max_message_size.
var tooLarge = regexp.MustCompile(`message size \d+ is larger than configured max size (\d+)`)

// learnFrom remembers the largest message that RabbitMQ accepts if the error says it. RabbitMQ delivers the
// call again whose reply was too large; without a smaller reply, RabbitMQ would close the channel for ever.
// learnFrom returns the closeError of the error.
func (l *replyLimits) learnFrom(ctx context.Context, err *amqp.Error) error {
	if err == nil {
		return closeError(nil)
	}
	found := tooLarge.FindStringSubmatch(err.Reason)
	if found == nil {
		return err
	}
	if size, parseErr := strconv.ParseInt(found[1], 10, 64); parseErr == nil && size < l.size.Load() {
		l.size.Store(size)
		slog.WarnContext(ctx, "RabbitMQ accepts smaller messages than berth sends: larger replies to agents become errors",
			"bytes", size)
	}
	return err
}
