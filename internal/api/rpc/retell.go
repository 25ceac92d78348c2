package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/network"
)

// memento is an exchange that nobody uses. It is not durable: a broker where it is missing has been started anew, and lost
// with it whatever waited in the queues of agents.
const memento = "berth.memento"

// Until when agents have come back to a broker that was away: they try it again after half a minute at the latest.
const comeback = 45 * time.Second

// unknown is how long before its start a process believes a broker to have been lost of which it knows no more than that.
const unknown = 10 * time.Minute

// Run keeps connected until ctx ends. When the broker was away, it has agents told again what they were told shortly before, since
// what the broker confirmed and had not handed out yet is lost: at once, and once more when all agents have come back.
func (c *Publisher) Run(ctx context.Context) {
	lost := time.Now().Add(-unknown)
	first := true
	again(ctx, "no connection with RabbitMQ: agents are told nothing", func(ctx context.Context) error {
		closed, forgetful, err := c.hold(ctx, !first)
		if err != nil {
			return err
		}
		if first = false; forgetful {
			slog.InfoContext(ctx, "RabbitMQ was away: agents are told again what it may have lost")
			if err := c.retell(ctx, lost); err != nil {
				c.Close() // to try all of it again
				return err
			}
			if err := c.remember(); err != nil {
				return err
			}
		}
		err = c.stay(ctx, closed, forgetful, lost)
		lost = time.Now()
		return err
	})
}

// hold connects. It tells when the connection ends, and whether the broker may have lost what it took: it was lost before, or has
// been started anew.
func (c *Publisher) hold(ctx context.Context, lost bool) (closed <-chan *amqp.Error, forgetful bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connect(); err != nil {
		return nil, false, err
	}
	closed = c.line.conn.NotifyClose(make(chan *amqp.Error, 1))
	if lost {
		return closed, true, nil
	}
	asking, err := c.line.conn.Channel()
	if err != nil {
		return nil, false, fmt.Errorf("ask RabbitMQ what it remembers: %w", err)
	}
	defer func() { _ = asking.Close() }()
	err = asking.ExchangeDeclarePassive(memento, "fanout", false, false, false, false, nil)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return closed, true, nil
	}
	return closed, false, err
}

// remember leaves the memento, once agents will be told again for certain.
func (c *Publisher) remember() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connect(); err != nil {
		return err
	}
	return c.line.channel.ExchangeDeclare(memento, "fanout", false, false, false, false, nil)
}

// stay waits until the connection ends, and meanwhile has agents told once more.
func (c *Publisher) stay(ctx context.Context, closed <-chan *amqp.Error, forgetful bool, lost time.Time) error {
	var back <-chan time.Time
	if forgetful {
		t := time.NewTimer(comeback)
		defer t.Stop()
		back = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-closed:
			return fmt.Errorf("connection lost: %w", orClosed(err))
		case <-back:
			if err := c.retell(ctx, lost); err != nil {
				return err
			}
			back = nil
		}
	}
}

// retell has agents told again what they were told since they may have stopped to listen.
func (c *Publisher) retell(ctx context.Context, lost time.Time) error {
	c.counts.retold.Inc()
	return c.desk.Store.Retell(ctx, time.Since(lost)+network.AgentDownTime)
}
