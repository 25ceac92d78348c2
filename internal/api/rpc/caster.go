package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/network"
)

// Caster tells agents what they have to know.
type Publisher struct {
	desk    *Desk
	options Options
	counts  castCounts
	mu      sync.Mutex // one announcement after the other, so that their order holds
	next    int        // the broker to try
	line    *line      // nil: not connected
}

// line is a connection on which the broker confirms what it has taken.
type line struct {
	conn     *amqp.Connection
	channel  *amqp.Channel
	returned chan amqp.Return
}

// NewCaster is a caster to one cluster of brokers.
func NewPublisher(o Options) *Publisher {
	c := &Publisher{desk: &Desk{Store: o.Store}, options: o}
	c.counts = newCastCounts(c.Connected)
	if o.Metrics != nil {
		c.counts.register(o.Metrics)
	}
	return c
}

// Connected tells whether there is a connection.
func (c *Publisher) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line.alive()
}

// alive tells whether letters may be sent over the line.
func (l *line) alive() bool { return l != nil && !l.conn.IsClosed() && !l.channel.IsClosed() }

// Close ends the connection.
func (c *Publisher) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUp()
}

func (c *Publisher) hangUp() {
	if c.line != nil {
		_ = c.line.conn.Close()
		c.line = nil
	}
}

// Tell tells of all that it can, in order, and returns what the broker has confirmed. A cast to an agent that does not listen is
// an error while the agent may still come to: it is missing for a moment after its broker was. Later it fetches everything itself.
func (c *Publisher) Publish(ctx context.Context, all []network.Announcement) (told []int64, err error) {
	versions, err := c.desk.Store.ObjectVersions(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range all {
		letters, err := c.desk.letters(ctx, a, versions)
		if err != nil {
			return told, err
		}
		if err := c.post(ctx, a, letters); err != nil {
			c.counts.casts.WithLabelValues(a.Kind, "failed").Inc()
			return told, err
		}
		c.counts.casts.WithLabelValues(a.Kind, "told").Inc()
		told = append(told, a.ID)
	}
	return told, nil
}

// letter is a message with its destination: the topic of a single agent, or all who listen to a topic.
type letter struct {
	topic  string
	fanout bool
	body   []byte
}

// post sends letters and waits until the broker has them.
func (c *Publisher) post(ctx context.Context, a network.Announcement, letters []letter) error {
	if len(letters) == 0 {
		return nil
	}
	if err := c.connect(); err != nil {
		return err
	}
	unheard, err := c.line.send(ctx, letters)
	if err != nil {
		c.hangUp()
		return fmt.Errorf("tell agents: %w", err)
	}
	if unheard != "" && a.Age < network.AgentDownTime {
		return fmt.Errorf("nobody listens to %s", unheard)
	}
	return nil
}

func (c *Publisher) connect() error {
	if c.line.alive() {
		return nil
	}
	c.hangUp()
	conn, err := dial(c.options.Brokers, c.next, "berth casts", c.options.TLS)
	c.next++
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err == nil {
		err = ch.ExchangeDeclare(exchange, "topic", false, false, false, false, nil)
	}
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("connect with RabbitMQ: %w", err)
	}
	c.line = &line{conn: conn, channel: ch, returned: ch.NotifyReturn(make(chan amqp.Return, lettersAtOnce))}
	return nil
}

// lettersAtOnce is how many letters are on their way before their confirmation is awaited.
const lettersAtOnce = 256

// send sends letters and tells which topic nobody listened to, if there was one.
func (l *line) send(ctx context.Context, letters []letter) (unheard string, err error) {
	for len(letters) > 0 {
		some := letters[:min(len(letters), lettersAtOnce)]
		letters = letters[len(some):]
		confirmations := make([]*amqp.DeferredConfirmation, len(some))
		for i, m := range some {
			if confirmations[i], err = l.publish(ctx, m); err != nil {
				return "", err
			}
		}
		for _, confirmation := range confirmations {
			taken, err := confirmation.WaitContext(ctx)
			if err != nil {
				return "", err
			}
			if !taken {
				return "", errors.New("the broker did not take it")
			}
		}
		for len(l.returned) > 0 { // what is returned is so before it is confirmed
			unheard = (<-l.returned).RoutingKey
		}
	}
	return unheard, nil
}

func (l *line) publish(ctx context.Context, m letter) (*amqp.DeferredConfirmation, error) {
	if !m.fanout {
		return l.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, m.topic, true, false, message(m.body, time.Now()))
	}
	to := m.topic + fanoutSuffix
	// It goes away with the last who listens, so it may be gone again.
	if err := l.channel.ExchangeDeclare(to, "fanout", false, true, false, false, nil); err != nil {
		return nil, err
	}
	return l.channel.PublishWithDeferredConfirmWithContext(ctx, to, "", false, false, message(m.body, time.Now()))
}
