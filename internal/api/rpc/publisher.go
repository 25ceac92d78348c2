package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/store/notificationstore"
)

// Publisher publishes notifications to agents over RabbitMQ.
type Publisher struct {
	options       Options
	notifications *notificationstore.Store
	handlers      *handlers
	wire          *oslomsg.Publisher // for the virtual host of the brokers' URLs
	hosts         hostPublishers     // for the registered virtual hosts
	metrics       publisherMetrics
	// held while a notification is built and published, so that no message has an older state than the one
	// before; the batches of several networks wait in the order of their requests, and so take turns
	turn *semaphore.Weighted
	// how long RabbitMQ last took to confirm messages in most virtual hosts; guarded by turn
	usualConfirm time.Duration
	now          func() time.Time // a test replaces it
	// confirmTime returns how long a virtual host took for a notification that began at the given time; the
	// host is "" for the virtual host of the brokers' URLs. A test replaces confirmTime.
	confirmTime func(host string, begin time.Time) time.Duration
}

// NewPublisher returns a publisher without a connection; the publisher connects to RabbitMQ when it is used
// for the first time.
func NewPublisher(o Options) *Publisher {
	p := &Publisher{
		options:       o,
		handlers:      &handlers{Store: o.Store},
		notifications: o.Notifications,
		wire:          oslomsg.NewPublisher(o.broker(), exchange, "berth casts"),
		turn:          semaphore.NewWeighted(1),
		usualConfirm:  hostPublishTimeout, // no virtual host is slow before there is a comparison
		now:           time.Now,
		confirmTime:   func(_ string, begin time.Time) time.Duration { return time.Since(begin) },
	}
	p.metrics = newPublisherMetrics(p.Connected)
	if o.Metrics != nil {
		p.metrics.register(o.Metrics)
	}
	return p
}

// Connected reports whether the publisher is connected to the virtual host of the brokers' URLs.
func (p *Publisher) Connected() bool { return p.wire.Connected() }

// Close waits until the current notification is published and then closes the connections. The caller must
// have ended the calls to Publish.
func (p *Publisher) Close() {
	_ = p.turn.Acquire(context.Background(), 1) // never fails, because the context does not end
	defer p.turn.Release(1)
	p.wire.Close()
	p.hosts.follow(p.options, nil)
	p.hosts.closing.Wait()
}

// Publish publishes notifications in order and returns the IDs of the notifications that RabbitMQ confirmed.
// If no queue exists for the message of a notification that is younger than network.AgentDownTime, Publish
// returns an error, because the agent may still declare its queue: an agent declares its queue shortly after
// the agent or RabbitMQ restarts. An agent that declares its queue after network.AgentDownTime fetches the
// whole state without a notification.
//
// Publish does not wait for a queue in the virtual host of one host, because the agents of this host could
// then delay the notifications to other hosts. Nor does it wait for a queue in the virtual host of the
// brokers' URLs if the message is also for a host that has a virtual host of its own, because the agents of
// this host have left the former. A replay follows when RabbitMQ has restarted, and an agent that starts
// fetches the whole state.
func (p *Publisher) Publish(
	ctx context.Context,
	notifications []network.AgentNotification,
) (published []int64, err error) {
	versions, err := p.handlers.Store.ObjectVersions(ctx)
	if err != nil {
		return nil, err
	}
	for objectType := range versions {
		versions[objectType] = slices.DeleteFunc(versions[objectType], isUnknownVersion)
	}
	registered, err := registeredVirtualHosts(ctx, p.options)
	if err != nil {
		return nil, err
	}
	accepted, err := p.handlers.acceptedPushes(ctx, registered)
	if err != nil {
		return nil, err
	}
	for _, n := range notifications {
		if err := p.publishInTurn(ctx, n, versions, accepted); err != nil {
			return published, err
		}
		published = append(published, n.ID)
	}
	return published, nil
}

// publishInTurn publishes one notification when it is its turn: a network, or the security groups of a
// project, with many notifications delay those of another network or project by one notification at a time.
// The parameter `versions` has the versions of the objects that agents accept, and the parameter `accepted`
// those of each host.
func (p *Publisher) publishInTurn(
	ctx context.Context,
	n network.AgentNotification,
	versions map[string][]string,
	accepted acceptedPushes,
) error {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for the notifications about other networks: %w", err)
	}
	defer p.turn.Release(1)
	registered, err := registeredVirtualHosts(ctx, p.options)
	if err != nil {
		return err
	}
	messages, err := p.handlers.buildMessages(ctx, n, versions)
	if err != nil {
		return err
	}
	if err := p.publishMessages(ctx, n, messages, p.hosts.follow(p.options, registered), accepted); err != nil {
		p.metrics.notifications.WithLabelValues(n.Resource, "failed").Inc()
		return err
	}
	p.metrics.notifications.WithLabelValues(n.Resource, "told").Inc()
	return nil
}

// publishMessages publishes the messages of one notification in the virtual hosts and waits until RabbitMQ
// has confirmed each message.
func (p *Publisher) publishMessages(
	ctx context.Context,
	n network.AgentNotification,
	messages []addressedMessage,
	hosts []*hostPublisher,
	accepted acceptedPushes,
) error {
	if err := p.wire.RequireConnection(ctx); err != nil {
		return err // most likely no virtual host is reachable: the notification is published later
	}
	var unroutable []string
	var times confirmTimes
	if !p.options.Identities {
		var err error
		begin := time.Now()
		published := messagesFor(messages, func(m addressedMessage) bool { return m.to.main })
		if unroutable, err = p.wire.Publish(ctx, published); err != nil {
			return err
		}
		if len(published) > 0 {
			times.main = p.confirmTime("", begin)
		}
	}
	var err error
	times.hosts, err = p.publishToHosts(ctx, hosts, messages, accepted)
	p.chargeHosts(ctx, hosts, times)
	if err != nil {
		return err
	}
	for _, m := range messages {
		inHost := slices.ContainsFunc(hosts, func(h *hostPublisher) bool { return m.to.includes(h.Host) })
		if !inHost && slices.Contains(unroutable, m.Topic) && n.Age < network.AgentDownTime {
			return fmt.Errorf("no queue is bound to topic %s", m.Topic)
		}
	}
	return nil
}

// publishToHosts publishes the messages of one notification in the registered virtual hosts. It returns the
// time that each of them took, also of one that has become unusable; 0: it got no messages.
func (p *Publisher) publishToHosts(
	ctx context.Context,
	hosts []*hostPublisher,
	messages []addressedMessage,
	accepted acceptedPushes,
) ([]time.Duration, error) {
	times, errs := make([]time.Duration, len(hosts)), make([]error, len(hosts))
	forEachHost(hosts, func(i int, h *hostPublisher) {
		included := messagesFor(messages, func(m addressedMessage) bool {
			return m.to.includes(h.Host) && accepted.accept(h.Host, m)
		})
		if len(included) == 0 || h.misses() {
			return
		}
		begin := time.Now()
		if errs[i] = h.publish(ctx, included); errs[i] == nil || h.misses() {
			times[i] = p.confirmTime(h.Host, begin)
		}
	})
	return times, errors.Join(errs...)
}

// publisherMetrics are the metrics of a Publisher.
type publisherMetrics struct {
	notifications *prometheus.CounterVec
	replays       prometheus.Counter
	connected     prometheus.GaugeFunc
}

func newPublisherMetrics(connected func() bool) publisherMetrics {
	return publisherMetrics{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_rpc_casts_total",
			Help: "Notifications to agents over RabbitMQ, by kind of object and outcome (told: RabbitMQ confirmed the messages; failed: it did not)."}, []string{"about", "outcome"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_rpc_retold_total",
			Help: "Replays of recent notifications that RabbitMQ may have lost, or that silent agents may have missed."}),
		connected: oslomsg.ConnectedGauge("casts", connected),
	}
}

func (m publisherMetrics) register(r prometheus.Registerer) {
	r.MustRegister(m.notifications, m.replays, m.connected)
}
