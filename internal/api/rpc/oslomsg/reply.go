package oslomsg

import (
	"context"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The server sends a reply again if the reply queue does not exist. An agent has one connection to RabbitMQ
// for its calls and another connection for the replies. After an outage of RabbitMQ, an agent may send a call
// before the agent's connection for replies is restored, which takes at most 30 seconds. The RPC servers of
// oslo.messaging also resend a reply whose queue does not exist.
const (
	replyTimeout        = 30 * time.Second
	replyResendPause    = 250 * time.Millisecond // before the first repetition
	maxReplyResendPause = 4 * time.Second
	maxPendingReplies   = 1000 // the number is limited, because a caller may never create its reply queue again
)

// resendPause returns the pause before a reply of the given age is sent again. The pause grows with the age:
// most reply queues that are still missing after a few seconds will not exist again. The age is up to a
// second too large, because a timestamp of AMQP has whole seconds.
func resendPause(age time.Duration) time.Duration {
	return min(max(age, replyResendPause), maxReplyResendPause)
}

// ReplyTooLarge is the message of the failure that a caller gets instead of a result that is too large.
const ReplyTooLarge = "The answer is too large for RabbitMQ."

// resendReturnedReplies receives the replies that RabbitMQ returned as unroutable. resendReturnedReplies
// sends each of these replies again after a pause, until the reply is older than replyTimeout.
// resendReturnedReplies ends when the AMQP channel closes.
func (s *Server) resendReturnedReplies(ch *amqp.Channel, returned <-chan amqp.Return) {
	pending := make(chan struct{}, maxPendingReplies)
	for r := range returned {
		size, age := int64(len(r.Body)), time.Since(r.Timestamp)
		if age > replyTimeout || len(pending) == cap(pending) ||
			!s.limits.keep(size) {
			s.metrics.countDrop(dropUnroutable)
			continue
		}
		pending <- struct{}{}
		time.AfterFunc(resendPause(age), func() {
			<-pending
			s.publishReply(context.Background(), ch, r.RoutingKey, newPublishing(r.Body, r.Timestamp))
			s.limits.pending.Add(-size)
		})
	}
}

// reply sends the result or failure of a call to the caller's reply queue. If the result is larger than a
// reply may be, the caller gets a failure instead.
func (s *Server) reply(ctx context.Context, ch *amqp.Channel, r request, result any, failure *Failure) {
	body, err := encodeReply(r, result, failure)
	if err != nil {
		slog.ErrorContext(ctx, "RPC reply cannot be encoded", "method", r.Method, "error", err)
		if body, err = encodeReply(r, nil, s.options.InternalFailure("The answer cannot be written.")); err != nil {
			return
		}
	}
	if limit := s.limits.size.Load(); int64(len(body)) > limit {
		slog.ErrorContext(ctx, "RPC reply is too large", "method", r.Method, "bytes", len(body), "limit", limit)
		if body, err = encodeReply(r, nil, s.options.InternalFailure(ReplyTooLarge)); err != nil {
			return
		}
	}
	s.publishReply(ctx, ch, r.ReplyTo, newPublishing(body, time.Now()))
}

// publishReply publishes to a queue with the mandatory flag: RabbitMQ returns the message if the queue does
// not exist.
func (s *Server) publishReply(ctx context.Context, ch *amqp.Channel, queue string, m amqp.Publishing) {
	if err := ch.PublishWithContext(ctx, "", queue, true, false, m); err != nil {
		s.metrics.countDrop(dropUnanswered)
	}
}
