package rpc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
)

// restartMarker is the name of an exchange without bindings. The exchange restartMarker is not durable, so
// that RabbitMQ loses the exchange when RabbitMQ restarts. If the exchange restartMarker is missing, RabbitMQ
// has restarted and has lost the messages in the agents' queues.
const restartMarker = "berth.memento"

// agentReconnectTime is the time in which all agents reconnect after an outage of RabbitMQ: oslo.messaging
// retries after at most 30 seconds.
const agentReconnectTime = 45 * time.Second

// assumedOutage is the assumed time between the beginning of an outage of RabbitMQ and the start of this
// process. assumedOutage is used if the exchange restartMarker is missing when the process starts.
const assumedOutage = 10 * time.Minute

// Run keeps the publisher connected until ctx ends. After an outage of RabbitMQ, Run replays recent
// notifications, because RabbitMQ may have lost messages that it had confirmed but not delivered. Run replays
// the recent notifications as soon as RabbitMQ is available again, and a second time when all agents have had
// time to reconnect. Run also runs the replays that are requested in the database.
func (p *Publisher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { p.keepHostsConnected(ctx) })
	running.Go(func() { p.runRequestedReplays(ctx) })
	lostAt := time.Now().Add(-assumedOutage)
	wasConnected := false
	oslomsg.KeepConnected(
		ctx,
		"publisher has no connection to RabbitMQ: agents get no notifications",
		func(ctx context.Context) error {
			lost, err := p.wire.Connect(ctx)
			if err != nil {
				return err
			}
			replay := wasConnected
			if !wasConnected {
				marked, err := p.wire.ExchangeExists(ctx, restartMarker)
				if err != nil {
					return err
				}
				replay = !marked
			}
			if wasConnected = true; replay {
				slog.InfoContext(ctx, "RabbitMQ was unavailable: replaying recent notifications to agents")
				if err := p.replay(ctx, lostAt); err != nil {
					p.wire.Close() // the next attempt starts with a new connection
					return err
				}
				// only now, so that another process repeats a failed replay
				if err := p.wire.DeclareExchange(ctx, restartMarker); err != nil {
					return err
				}
			}
			err = p.waitUntilLost(ctx, lost, replay, lostAt)
			lostAt = time.Now()
			return err
		},
	)
}

// waitUntilLost waits until the connection ends. If the parameter `secondReplay` is true, waitUntilLost also
// replays recent notifications when agentReconnectTime has passed.
func (p *Publisher) waitUntilLost(
	ctx context.Context,
	lost <-chan error,
	secondReplay bool,
	lostAt time.Time,
) error {
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

// replay enqueues again all notifications that agents may have missed.
func (p *Publisher) replay(ctx context.Context, lostAt time.Time) error {
	p.metrics.replays.Inc()
	return p.notifications.Replay(ctx, missedFor(lostAt))
}

// missedFor returns for how long agents may have missed notifications. An agent may have missed every
// notification that was created after the loss of the connection, or less than AgentDownTime before the loss.
func missedFor(lostAt time.Time) time.Duration { return time.Since(lostAt) + network.AgentDownTime }

// requestedReplayPoll is the time after which the publisher looks again for a requested replay.
const requestedReplayPoll = 2 * time.Second

// runRequestedReplays runs requested replays until ctx ends. The heartbeats of revived agents request
// replays, and each process that can use a virtual host again.
func (p *Publisher) runRequestedReplays(ctx context.Context) {
	tick := time.NewTicker(requestedReplayPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		done, err := p.notifications.ReplayRequested(ctx)
		switch {
		case done:
			p.metrics.replays.Inc()
			slog.InfoContext(ctx, "replaying the notifications that silent or unreachable agents may have missed")
		case err != nil && ctx.Err() == nil:
			slog.WarnContext(ctx, "notifications that agents may have missed cannot be replayed yet",
				"error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
