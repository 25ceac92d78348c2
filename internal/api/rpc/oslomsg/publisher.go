package oslomsg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
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
// use.
type Publisher struct {
	mu       sync.Mutex
	broker   Broker
	exchange string
	name     string   // of the connection
	current  *session // nil: not connected
}

// session is a connection with a channel in confirm mode.
type session struct {
	conn     *amqp.Connection
	channel  *amqp.Channel
	returned chan amqp.Return
}

// NewPublisher returns a publisher that sends messages to a topic exchange. The parameter `name` is the name
// of the AMQP connection, which RabbitMQ shows in its list of connections.
func NewPublisher(b Broker, exchange, name string) *Publisher {
	return &Publisher{broker: b, exchange: exchange, name: name}
}

// Connected reports whether the publisher is connected to RabbitMQ.
func (p *Publisher) Connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.usable()
}

func (s *session) usable() bool { return s != nil && !s.conn.IsClosed() && !s.channel.IsClosed() }

// Close closes the publisher's connection. After Close, the next method of the publisher that needs a
// connection connects to RabbitMQ again.
func (p *Publisher) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

func (p *Publisher) close() {
	if p.current != nil {
		_ = p.current.conn.Close()
		p.current = nil
	}
}

// RequireConnection connects to RabbitMQ unless the publisher is connected.
func (p *Publisher) RequireConnection() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connect()
}

// Connect connects to RabbitMQ unless the publisher is connected. When the connection to RabbitMQ ends, the
// channel that Connect has returned receives an error.
func (p *Publisher) Connect() (<-chan error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.connect(); err != nil {
		return nil, err
	}
	closed := p.current.conn.NotifyClose(make(chan *amqp.Error, 1))
	lost := make(chan error, 1)
	go func() { lost <- fmt.Errorf("connection to RabbitMQ lost: %w", closeError(<-closed)) }()
	return lost, nil
}

func (p *Publisher) connect() error {
	if p.current.usable() {
		return nil
	}
	p.close()
	conn, err := p.broker.dial(p.name)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err == nil {
		err = ch.ExchangeDeclare(p.exchange, "topic", false, false, false, false, nil)
	}
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	p.current = &session{
		conn:     conn,
		channel:  ch,
		returned: ch.NotifyReturn(make(chan amqp.Return, maxUnconfirmed)),
	}
	return nil
}

// ExchangeExists reports whether RabbitMQ has a fanout exchange with the given name that is not durable.
func (p *Publisher) ExchangeExists(name string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.connect(); err != nil {
		return false, err
	}
	// a channel of its own, because the broker closes it if the exchange does not exist
	ch, err := p.current.conn.Channel()
	if err != nil {
		return false, fmt.Errorf("open a channel to RabbitMQ: %w", err)
	}
	defer func() { _ = ch.Close() }()
	err = ch.ExchangeDeclarePassive(name, "fanout", false, false, false, false, nil)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return false, nil
	}
	return err == nil, err
}

// DeclareExchange declares a fanout exchange that is not durable, so that RabbitMQ loses the exchange when
// RabbitMQ restarts.
func (p *Publisher) DeclareExchange(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.connect(); err != nil {
		return err
	}
	return p.current.channel.ExchangeDeclare(name, "fanout", false, false, false, false, nil)
}

// Publish publishes messages in order and waits until RabbitMQ has confirmed every message. If no queue is
// bound to the topic of a message, RabbitMQ confirms the message and drops it, and Publish returns the topic.
// Publish never returns the topic of a fanout message as unroutable.
func (p *Publisher) Publish(ctx context.Context, messages []Message) (unroutable []string, err error) {
	if len(messages) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.connect(); err != nil {
		return nil, err
	}
	unroutable, err = p.current.publishAll(ctx, p.exchange, messages)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("publish to RabbitMQ: %w", err)
	}
	return unroutable, nil
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
