package rpc

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/agentstore"
)

// hostPublisher publishes messages in the registered virtual host of one host.
type hostPublisher struct {
	agentstore.VirtualHost
	wire *oslomsg.Publisher

	mu            sync.Mutex
	wasConnected  bool
	missingSince  time.Time // since when agents may have missed messages; zero: they have missed none
	reconnectedAt time.Time
	confirmedAt   time.Time     // when RabbitMQ last confirmed the messages of a notification without delay
	delay         delayBucket   // for how long the virtual host has delayed the others
	pause         time.Duration // from missingSince until the next attempt to connect
}

// maxHostPause is the longest pause before a new connection to a virtual host whose connection fails again
// and again. Because a replay follows each new connection, the agents of one host could otherwise cause a
// replay to all hosts every few seconds.
const maxHostPause = 10 * time.Minute

// hostConnectTimeout is how long an attempt to connect to the virtual host of one host may take.
const hostConnectTimeout = 10 * time.Second

// hostPublishTimeout is how long RabbitMQ may take to confirm the messages of a notification in the virtual
// host of one host. hostPublishTimeout is shorter than an attempt of the activity that publishes: if a queue
// of one host confirms nothing, the attempt still publishes to the other hosts.
const hostPublishTimeout = 7 * time.Second

// publish publishes messages. If the virtual host is unreachable or does not confirm the messages in time,
// publish remembers since when its agents miss messages and returns no error: an unusable virtual host must
// not delay the messages to other hosts. If ctx ends meanwhile, publish remembers the same and returns an
// error; the next attempt then does not wait for this virtual host again.
func (p *hostPublisher) publish(ctx context.Context, messages []oslomsg.Message) error {
	if p.misses() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, hostPublishTimeout)
	defer cancel()
	_, err := p.wire.Publish(limited, messages)
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.miss(ctx, err, p.confirmedAt)
	if ctx.Err() != nil {
		return err
	}
	return nil
}

func (p *hostPublisher) misses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.missingSince.IsZero()
}

// miss remembers that the agents miss messages. The connection has worked until the time workedUntil, or not
// at all if that is before the connection began. The caller holds p.mu.
func (p *hostPublisher) miss(ctx context.Context, err error, workedUntil time.Time) {
	if p.missingSince.IsZero() {
		p.missingSince = time.Now()
		p.pause = nextPause(p.pause, workedUntil.Sub(p.reconnectedAt))
		slog.WarnContext(ctx, "virtual host of agents is unreachable: its agents get no notifications",
			"virtual_host", p.Name, "host", p.Host, "error", err)
	}
}

// nextPause returns the pause before the next connection to a virtual host, after a connection that has
// worked for the duration `worked` and that began after the pause `previous`.
func nextPause(previous, worked time.Duration) time.Duration {
	if worked > maxHostPause {
		return 0
	}
	return min(max(2*previous, virtualHostPoll), maxHostPause)
}

// reconnect connects unless the publisher is connected. After a time without a connection, reconnect returns
// since when agents may have missed messages, otherwise the zero time.
func (p *hostPublisher) reconnect(ctx context.Context) (missingSince time.Time) {
	if !p.mustConnect(ctx) {
		return time.Time{}
	}
	limited, cancel := context.WithTimeout(ctx, hostConnectTimeout)
	defer cancel()
	err := p.wire.RequireConnection(limited)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil:
		p.miss(ctx, err, p.reconnectedAt)
		return time.Time{}
	case err != nil: // the process stops
		return time.Time{}
	}
	missingSince = p.missingSince
	p.missingSince, p.reconnectedAt, p.wasConnected = time.Time{}, time.Now(), true
	return missingSince
}

// mustConnect reports whether the publisher must connect now. If the connection is lost, mustConnect
// remembers that the agents miss messages.
func (p *hostPublisher) mustConnect(ctx context.Context) bool {
	connected := p.wire.Connected()
	p.mu.Lock()
	defer p.mu.Unlock()
	lost, due := p.wasConnected && !connected, time.Since(p.missingSince) >= p.pause
	p.wasConnected = connected
	if lost {
		p.miss(ctx, errConnectionLost, time.Now())
		return false
	}
	return (!connected || !p.missingSince.IsZero()) && due
}

var errConnectionLost = errors.New("connection lost")

// hostPublishers are the publishers for all registered virtual hosts.
type hostPublishers struct {
	mu      sync.Mutex
	all     map[uuid.UUID]*hostPublisher
	closing sync.WaitGroup // of the publishers for removed registrations
}

// follow creates a publisher for each registered virtual host that has none, and returns the publishers for
// all registered virtual hosts. follow closes the publishers for removed registrations in the background,
// because their connections may be in use, and RabbitMQ may not answer.
func (s *hostPublishers) follow(o Options, registered []agentstore.VirtualHost) []*hostPublisher {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.all
	s.all = map[uuid.UUID]*hostPublisher{}
	var list []*hostPublisher
	for _, v := range registered {
		p := before[v.ID]
		if p == nil {
			broker := o.broker()
			broker.VirtualHost = v.Name
			p = &hostPublisher{VirtualHost: v, wire: oslomsg.NewPublisher(broker, exchange, "berth casts")}
		}
		delete(before, v.ID)
		s.all[v.ID] = p
		list = append(list, p)
	}
	for _, removed := range before {
		s.closing.Go(removed.wire.Close)
	}
	return list
}

// Unreachable returns the names of the registered virtual hosts whose agents get no notifications from this
// process.
func (p *Publisher) Unreachable() (names []string) {
	p.hosts.mu.Lock()
	defer p.hosts.mu.Unlock()
	for _, h := range p.hosts.all {
		if h.misses() {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}

// maxParallelHosts is the number of virtual hosts to which a process connects or publishes at the same time.
const maxParallelHosts = 32

// forEachHost calls f for all publishers, for at most maxParallelHosts at the same time.
func forEachHost(hosts []*hostPublisher, f func(i int, h *hostPublisher)) {
	var running sync.WaitGroup
	free := make(chan struct{}, maxParallelHosts)
	for i, h := range hosts {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			f(i, h)
		})
	}
	running.Wait()
}

// keepHostsConnected keeps the publishers connected to their virtual hosts until ctx ends. When a virtual
// host is reachable again, keepHostsConnected requests a replay of recent notifications, and another one when
// its agents have had time to reconnect. A replay goes to all hosts, so one replay is enough for all virtual
// hosts that are reachable again at about the same time, and for the requests of all processes.
func (p *Publisher) keepHostsConnected(ctx context.Context) {
	var due, again, lostAt time.Time // zero: no request for a replay is due
	pollVirtualHosts(ctx, p.options, func(registered []agentstore.VirtualHost) {
		hosts := p.hosts.follow(p.options, registered)
		since := make([]time.Time, len(hosts))
		forEachHost(hosts, func(i int, h *hostPublisher) { since[i] = h.reconnect(ctx) })
		for _, t := range since {
			if t.IsZero() {
				continue
			}
			if due.IsZero() || t.Before(lostAt) {
				lostAt = t
			}
			due, again = time.Now(), time.Now().Add(agentReconnectTime)
		}
		if due.IsZero() || time.Now().Before(due) {
			return
		}
		if err := p.notifications.RequestReplay(ctx, missedFor(lostAt)); err != nil {
			slog.WarnContext(ctx, "replay of the notifications that agents may have missed cannot be requested yet",
				"error", err)
			return
		}
		due, again = again, time.Time{}
	})
}
