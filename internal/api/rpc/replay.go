package rpc

import (
	"context"
	"log/slog"
	"time"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
)

// restartMarker is the name of an exchange without bindings. The exchange is not durable. If it is missing, RabbitMQ has restarted and lost
// the messages in the agents' queues.
const restartMarker = "berth.memento"

// agentReconnectTime is the time in which all agents reconnect after an outage of RabbitMQ: oslo.messaging retries after at most 30
// seconds.
const agentReconnectTime = 45 * time.Second

// assumedOutage is how long before the start of this process RabbitMQ is assumed to have become unavailable. assumedOutage is used if
// restartMarker is missing when the process starts.
const assumedOutage = 10 * time.Minute

// Run keeps the publisher connected until ctx ends. After an outage of RabbitMQ Run replays recent notifications, because RabbitMQ loses
// messages that it confirmed but did not deliver. Run replays the notifications immediately, and again when all agents have had time to
// reconnect.
func (p *Publisher) Run(ctx context.Context) {
	lostAt := time.Now().Add(-assumedOutage)
	wasConnected := false
	oslomsg.KeepConnected(ctx, "publisher has no connection to RabbitMQ: agents get no notifications", func(ctx context.Context) error {
		lost, err := p.wire.Connect()
		if err != nil {
			return err
		}
		replay := wasConnected
		if !wasConnected {
			marked, err := p.wire.ExchangeExists(restartMarker)
			if err != nil {
				return err
			}
			replay = !marked
		}
		if wasConnected = true; replay {
			slog.InfoContext(ctx, "RabbitMQ was unavailable: replaying recent notifications to agents")
			if err := p.replay(ctx, lostAt); err != nil {
				p.Close() // the next attempt starts with a new connection
				return err
			}
			if err := p.wire.DeclareExchange(restartMarker); err != nil { // only after the replay is certain
				return err
			}
		}
		err = p.waitUntilLost(ctx, lost, replay, lostAt)
		lostAt = time.Now()
		return err
	})
}

// waitUntilLost waits until the connection ends. If `secondReplay` is true, waitUntilLost replays recent notifications once more after
// agentReconnectTime.
func (p *Publisher) waitUntilLost(ctx context.Context, lost <-chan error, secondReplay bool, lostAt time.Time) error {
	var replayDue <-chan time.Time
	if secondReplay {
		t := time.NewTimer(agentReconnectTime)
		defer t.Stop()
		replayDue = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			return err
		case <-replayDue:
			if err := p.replay(ctx, lostAt); err != nil {
				return err
			}
			replayDue = nil
		}
	}
}

// replay enqueues again all notifications that agents may have missed. Agents may have missed the notifications that were created later
// than AgentDownTime before the loss of the connection.
func (p *Publisher) replay(ctx context.Context, lostAt time.Time) error {
	p.metrics.replays.Inc()
	return p.handlers.Store.ReplayNotifications(ctx, time.Since(lostAt)+network.AgentDownTime)
}
