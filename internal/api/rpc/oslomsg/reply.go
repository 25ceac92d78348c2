package oslomsg

import (
	"context"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Replies whose queue does not exist are sent again. After an outage of RabbitMQ an agent sends calls over one connection before
// the other connection, on which it receives replies, is back: oslo.messaging reconnects after at most 30 seconds, and its own
// servers resend replies too.
const (
	replyTimeout      = 30 * time.Second
	replyResendPause  = 250 * time.Millisecond
	maxPendingReplies = 1000 // callers may be gone for good, so the number is limited
)

// resendReturnedReplies sends replies that RabbitMQ returned as unroutable again after a pause, until replyTimeout. It ends when
// the channel closes.
func (s *Server) resendReturnedReplies(ch *amqp.Channel, returned <-chan amqp.Return) {
	pending := make(chan struct{}, maxPendingReplies)
	for r := range returned {
		if time.Since(r.Timestamp) > replyTimeout || len(pending) == cap(pending) {
			s.metrics.countDrop(dropUnroutable)
			continue
		}
		pending <- struct{}{}
		time.AfterFunc(replyResendPause, func() {
			<-pending
			s.publishReply(context.Background(), ch, r.RoutingKey, newPublishing(r.Body, r.Timestamp))
		})
	}
}

// reply sends the result or failure to the caller's reply queue.
func (s *Server) reply(ctx context.Context, ch *amqp.Channel, r request, result any, failure *Failure) {
	body, err := encodeReply(r, result, failure)
	if err != nil {
		slog.ErrorContext(ctx, "RPC reply cannot be encoded", "method", r.Method, "error", err)
		if body, err = encodeReply(r, nil, s.options.InternalFailure("The answer cannot be written.")); err != nil {
			return
		}
	}
	s.publishReply(ctx, ch, r.ReplyTo, newPublishing(body, time.Now()))
}

// publishReply publishes to a queue with the mandatory flag: RabbitMQ returns the message if the queue does not exist.
func (s *Server) publishReply(ctx context.Context, ch *amqp.Channel, queue string, m amqp.Publishing) {
	if err := ch.PublishWithContext(ctx, "", queue, true, false, m); err != nil {
		s.metrics.countDrop(dropUnanswered)
	}
}
