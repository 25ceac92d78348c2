package oslomsg

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"
)

// Message is a cast (a message without a reply) and its destination.
type Message struct {
	Topic  string // ends in ".host" if only the server on that host gets the message
	Fanout bool   // all servers that listen to the topic get the message
	Body   []byte // from EncodeCast
}

// ValidTopic reports whether the topic and the name of its fanout exchange are short enough for RabbitMQ.
func ValidTopic(topic string) bool { return len(topic)+len(fanoutSuffix) <= MaxName }

// Publisher publishes messages on one connection and waits for RabbitMQ's confirms. A Publisher has no
// connection to RabbitMQ until one of its methods needs the connection. A Publisher is safe for concurrent
// use. No method waits for RabbitMQ after its context has ended; the connection ends then, too.
type Publisher struct {
	turn     *semaphore.Weighted // of the method that uses the connection
	broker   Broker
	exchange string
	name     string                  // of the connection
	current  atomic.Pointer[session] // nil: not connected; written only by the method whose turn it is
}

// session is a connection with a channel in confirm mode.
type session struct {
	conn     *connection
	channel  *amqp.Channel
	returned chan amqp.Return
}

// NewPublisher returns a publisher that sends messages to a topic exchange. The parameter `name` is the name
// of the AMQP connection, which RabbitMQ shows in its list of connections.
func NewPublisher(b Broker, exchange, name string) *Publisher {
	return &Publisher{turn: semaphore.NewWeighted(1), broker: b, exchange: exchange, name: name}
}

// Connected reports whether the publisher is connected to RabbitMQ. Connected does not wait for methods that
// use the connection.
func (p *Publisher) Connected() bool { return p.current.Load().usable() }

func (s *session) usable() bool { return s != nil && !s.conn.IsClosed() && !s.channel.IsClosed() }

// Close closes the publisher's connection. After Close, the next method of the publisher that needs a
// connection connects to RabbitMQ again.
func (p *Publisher) Close() {
	_ = p.turn.Acquire(context.Background(), 1) // never fails, because the context does not end
	defer p.turn.Release(1)
	p.close()
}

func (p *Publisher) close() {
	if s := p.current.Swap(nil); s != nil {
		s.conn.close()
	}
}

// use calls f with the session when it is the turn of the caller, and connects to RabbitMQ before unless the
// publisher is connected. When ctx ends, use closes the connection, so that f returns. If f returns an error
// then, the error of use contains that of ctx.
func (p *Publisher) use(ctx context.Context, f func(*session) error) error {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for the connection to RabbitMQ: %w", err)
	}
	defer p.turn.Release(1)
	err := p.useSession(ctx, f)
	if ctx.Err() == nil {
		return err
	}
	p.close()
	if err != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

func (p *Publisher) useSession(ctx context.Context, f func(*session) error) error {
	if !p.current.Load().usable() {
		p.close()
		s, err := p.connect(ctx)
		if err != nil {
			return err
		}
		p.current.Store(s)
	}
	s := p.current.Load()
	defer s.conn.endWith(ctx)()
	return f(s)
}

// RequireConnection connects to RabbitMQ unless the publisher is connected.
func (p *Publisher) RequireConnection(ctx context.Context) error {
	return p.use(ctx, func(*session) error { return nil })
}

// Connect connects to RabbitMQ unless the publisher is connected. When the connection to RabbitMQ ends, the
// channel that Connect has returned receives an error.
func (p *Publisher) Connect(ctx context.Context) (<-chan error, error) {
	lost := make(chan error, 1)
	return lost, p.use(ctx, func(s *session) error {
		closed := s.conn.NotifyClose(make(chan *amqp.Error, 1))
		go func() { lost <- fmt.Errorf("connection to RabbitMQ lost: %w", closeError(<-closed)) }()
		return nil
	})
}

// connect opens a session. The attempt takes at most heartbeatInterval.
func (p *Publisher) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	conn, err := p.broker.dial(ctx, p.name)
	if err != nil {
		return nil, err
	}
	defer conn.endWith(ctx)()
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err == nil {
		err = ch.ExchangeDeclare(p.exchange, "topic", false, false, false, false, nil)
	}
	if err != nil {
		conn.close()
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	return &session{
		conn:     conn,
		channel:  ch,
		returned: ch.NotifyReturn(make(chan amqp.Return, maxUnconfirmed)),
	}, nil
}

// ExchangeExists reports whether RabbitMQ has a fanout exchange with the given name that is not durable.
func (p *Publisher) ExchangeExists(ctx context.Context, name string) (exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	err = p.use(ctx, func(s *session) error {
		// a channel of its own, because the broker closes it if the exchange does not exist
		ch, err := s.conn.Channel()
		if err != nil {
			return fmt.Errorf("open a channel to RabbitMQ: %w", err)
		}
		defer func() { _ = ch.Close() }()
		err = ch.ExchangeDeclarePassive(name, "fanout", false, false, false, false, nil)
		if refused, ok := errors.AsType[*amqp.Error](err); ok && refused.Code == amqp.NotFound {
			return nil
		}
		exists = err == nil
		return err
	})
	return exists, err
}

// DeclareExchange declares a fanout exchange that is not durable, so that RabbitMQ loses the exchange when
// RabbitMQ restarts.
func (p *Publisher) DeclareExchange(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	return p.use(ctx, func(s *session) error {
		return s.channel.ExchangeDeclare(name, "fanout", false, false, false, false, nil)
	})
}

// Publish publishes messages in order and waits until RabbitMQ has confirmed every message. If no queue is
// bound to the topic of a message, RabbitMQ confirms the message and drops it, and Publish returns the topic.
// Publish never returns the topic of a fanout message as unroutable.
func (p *Publisher) Publish(ctx context.Context, messages []Message) (unroutable []string, err error) {
	if len(messages) == 0 {
		return nil, nil
	}
	err = p.use(ctx, func(s *session) error {
		if unroutable, err = s.publishAll(ctx, p.exchange, messages); err != nil {
			p.close()
			return fmt.Errorf("publish to RabbitMQ: %w", err)
		}
		return nil
	})
	return unroutable, err
}

// maxUnconfirmed is the maximum number of messages that the publisher sends before it waits for RabbitMQ's
// confirms of these messages.
const maxUnconfirmed = 256

func (s *session) publishAll(
	ctx context.Context,
	exchange string,
	messages []Message,
) (unroutable []string, err error) {
	for len(messages) > 0 {
		chunk := messages[:min(len(messages), maxUnconfirmed)]
		messages = messages[len(chunk):]
		confirms := make([]*amqp.DeferredConfirmation, len(chunk))
		for i, m := range chunk {
			if confirms[i], err = s.publish(ctx, exchange, m); err != nil {
				return nil, err
			}
		}
		for _, confirm := range confirms {
			acked, err := confirm.WaitContext(ctx)
			if err != nil {
				return nil, err
			}
			if !acked {
				return nil, errors.New("RabbitMQ rejected a message (basic.nack)")
			}
		}
		for len(s.returned) > 0 { // RabbitMQ returns an unroutable message before the confirm of the message
			unroutable = append(unroutable, (<-s.returned).RoutingKey)
		}
	}
	return unroutable, nil
}

// tracedPublishing returns a message with the traceparent of the context, if its trace is sampled.
func tracedPublishing(ctx context.Context, body []byte) amqp.Publishing {
	p := newPublishing(body, time.Now())
	if trace.SpanContextFromContext(ctx).IsSampled() {
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		p.Headers["traceparent"] = carrier["traceparent"]
	}
	return p
}

func (s *session) publish(
	ctx context.Context,
	exchange string,
	m Message,
) (*amqp.DeferredConfirmation, error) {
	if !m.Fanout {
		return s.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, m.Topic, true, false,
			tracedPublishing(ctx, m.Body))
	}
	fanout := m.Topic + fanoutSuffix
	// The fanout exchange may be missing, because RabbitMQ deletes the exchange together with the last queue
	// that was bound to the exchange.
	if err := s.channel.ExchangeDeclare(fanout, "fanout", false, true, false, false, nil); err != nil {
		return nil, err
	}
	return s.channel.PublishWithDeferredConfirmWithContext(ctx, fanout, "", false, false,
		tracedPublishing(ctx, m.Body))
}
