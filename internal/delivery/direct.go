package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/network"
)

const (
	// directInterval is the interval at which Direct searches for late deliveries.
	directInterval = time.Second
	// lateAfter is the age from which a message is late if Temporal has not accepted the note of the
	// message's port or network.
	lateAfter = 2 * time.Second
	// claimTime is how long Direct claims the rows that it delivers. If a delivery fails, Direct delivers the
	// same rows again only after this time. claimTime is longer than attemptTimeout, so that a claim does not
	// expire during the delivery.
	claimTime = 20 * time.Second
	// attemptTimeout is the maximum duration of one delivery.
	attemptTimeout = 15 * time.Second
	// maxDirect is the maximum number of ports or networks that one search finds; all found ports or networks
	// are delivered concurrently.
	maxDirect = 200
)

// Direct sends Nova events, and notifications to agents, without Temporal while Temporal is unavailable,
// because a new server waits for these messages before it boots. Direct sends only messages of a port or
// network whose note (the outbox row that starts the workflow) Temporal has not accepted for lateAfter.
// Usually a workflow has sent the messages before. Several processes can run a Direct at the same time.
type Direct struct {
	sender     Sender
	deliveries *prometheus.CounterVec
}

// NewDirect creates a Direct and registers its metrics.
func NewDirect(s Sender, metrics prometheus.Registerer) *Direct {
	d := &Direct{sender: s, deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_direct_deliveries_total",
		Help: "Attempts to deliver Nova events of a port (kind nova) or notifications of a network to agents (kind agents) without Temporal, because Temporal had not accepted the note, by outcome.",
	}, []string{"kind", "outcome"})}
	metrics.MustRegister(d.deliveries)
	return d
}

// Run delivers until ctx ends.
func (d *Direct) Run(ctx context.Context) {
	kinds := []kind{
		{"nova", d.sender.Recorded.LatePorts, d.novaEvents},
		{"agents", d.sender.Recorded.LateNetworks, d.notifications},
	}
	var loops sync.WaitGroup
	for _, k := range kinds {
		loops.Go(func() {
			for ctx.Err() == nil {
				d.deliver(ctx, k)
				select {
				case <-ctx.Done():
				case <-time.After(directInterval):
				}
			}
		})
	}
	loops.Wait()
}

// kind is one kind of messages.
type kind struct {
	name string
	late func(ctx context.Context, age time.Duration, limit int) ([]uuid.UUID, error)
	send func(ctx context.Context, object uuid.UUID) error
}

// deliver sends the late messages of one kind.
func (d *Direct) deliver(ctx context.Context, k kind) {
	objects, err := k.late(ctx, lateAfter, maxDirect)
	if err != nil {
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "searching for late deliveries failed", "kind", k.name, "error", err)
		}
		return
	}
	var attempts sync.WaitGroup
	for _, id := range objects {
		attempts.Go(func() { d.attempt(ctx, k, id) })
	}
	attempts.Wait()
}

func (d *Direct) attempt(ctx context.Context, k kind, id uuid.UUID) {
	ctx, stop := context.WithTimeout(ctx, attemptTimeout)
	defer stop()
	err := k.send(ctx, id)
	switch {
	case errors.Is(err, ErrClaimed):
	case err != nil:
		d.deliveries.WithLabelValues(k.name, "failed").Inc()
		slog.WarnContext(ctx, "delivery without Temporal failed", "kind", k.name, "object", id, "error", err)
	default:
		d.deliveries.WithLabelValues(k.name, "delivered").Inc()
		slog.InfoContext(ctx, "delivered without Temporal, which had not accepted the note",
			"kind", k.name, "object", id)
	}
}

func (d *Direct) novaEvents(ctx context.Context, port uuid.UUID) error {
	return d.sender.sendNovaEvents(ctx, port, func(after int64) ([]network.NovaEvent, error) {
		return d.sender.Recorded.ClaimNovaEvents(ctx, port, after, claimTime)
	})
}

func (d *Direct) notifications(ctx context.Context, id uuid.UUID) error {
	return d.sender.publishAll(ctx, func() ([]network.AgentNotification, error) {
		return d.sender.Recorded.Claim(ctx, id, claimTime, notificationBatch)
	})
}
