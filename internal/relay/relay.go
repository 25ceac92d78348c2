// Package relay delivers notes from the outbox to Temporal. A note is a row of the outbox. It names a
// workflow that must run, and must read the database row of the workflow's object again. Apart from the name
// of the workflow, package relay knows nothing about ports, leases or journal entries. Because the workflow
// reads the current row, a note may be delivered twice, late or in another order.
package relay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/client"

	"berth/internal/namespace"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

const (
	describeTimeout = 5 * time.Second // timeout of the call that reads the namespace
	pollInterval    = time.Second     // finds notes whose NOTIFY was lost
	// approximate maximum number of concurrent deliveries of DeliverClaimed
	maxConcurrentClaimed = 64
)

// Options are the dependencies of a Relay.
type Options struct {
	Store *outbox.Store
	// Client must be the Temporal client that the workers in the same process use, because Temporal starts a
	// workflow eagerly only on a worker of the client that starts the workflow.
	Client    client.Client
	Namespace string // Temporal namespace of Client
	Metrics   prometheus.Registerer
	Tracer    trace.Tracer // for notes of traced requests; nil: no traces
	// MinDeadline and MaxDeadline limit the deadline of one call to Temporal; 0: five and ten seconds. The
	// deadline grows with the time that Temporal takes to answer, because the relay repeats a call that it
	// has given up, and the repetition makes a slow server slower.
	MinDeadline, MaxDeadline time.Duration
	// HideProjects means that workflows get no search attribute with the project of their object.
	HideProjects bool
	// Versioned means that the workers of Client are versioned. Then no workflow starts eagerly, because an
	// eager start runs on the worker of Client, whichever version is current or ramping in Temporal.
	Versioned bool
}

// Relay delivers notes. Any number of relays may run concurrently. The database is bound to one Temporal
// namespace at a time; a relay whose Client uses another namespace delivers nothing.
type Relay struct {
	Options
	binding         *namespace.Binding
	limiter         *limiter
	claims          int          // number of claims
	claimedInFlight atomic.Int64 // number of notes that DeliverClaimed is delivering
	delivered       prometheus.Counter
	deferred        prometheus.Counter
	calls           *prometheus.HistogramVec
}

// New creates a relay and registers its metrics.
func New(o Options) *Relay {
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	r := &Relay{
		Options: o,
		binding: namespace.New(o.Store, o.Client, o.Namespace),
		limiter: newLimiter(o),
		delivered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_notes_delivered_total",
			Help: "Outbox notes delivered to Temporal.",
		}),
		deferred: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_notes_deferred_total",
			Help: "Failed deliveries of outbox notes; each note is retried after a delay.",
		}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_relay_call_duration_seconds",
			Help:    "Duration of the calls to Temporal that deliver outbox notes, in seconds, by outcome: accepted, refused (Temporal refuses this note), busy (the workflow is busy), unavailable (Temporal is slow, throttled or away).",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10},
		}, []string{"outcome"}),
	}
	o.Metrics.MustRegister(r.delivered, r.deferred, r.calls, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_relay_concurrency",
		Help: "Maximum number of calls that this process makes to Temporal at the same time to deliver notes. It falls while Temporal is overloaded.",
	}, r.limiter.concurrency))
	return r
}

// Run delivers notes until ctx ends. If the database or Temporal returns an error, Run logs the error and
// continues.
func (r *Relay) Run(ctx context.Context) error {
	ctx = withClass(ctx)
	wake := make(chan struct{}, 1)
	go r.listen(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	results := make(chan result, 2*maxConcurrency)
	running, bound, due := 0, false, true // due: the outbox may have more due notes
	for ctx.Err() == nil {
		var err error
		n := 0
		if running == 0 {
			bound, err = r.binding.Bind(ctx)
		}
		if bound && due && err == nil {
			n, due, err = r.begin(ctx, results)
			running += n
		}
		logFailure(ctx, err)
		finished, woken := await(ctx, results, wake, r.delay(ctx, bound && err == nil, due, running))
		running -= len(finished)
		due = due || woken
		if len(finished) > 0 {
			logFailure(ctx, r.settle(ctx, finished))
		}
	}
	return nil
}

// withClass returns a context whose statements are a class of their own, so that the deliveries do not wait
// for a connection behind activities that wait for locks.
func withClass(ctx context.Context) context.Context { return db.WithClass(ctx, "relay") }

// delay returns how long Run waits at most, if no other event happens, before it claims notes again.
func (r *Relay) delay(ctx context.Context, working, due bool, running int) time.Duration {
	free, pause := r.limiter.free(time.Now())
	switch {
	case !working:
		return pollInterval
	case due && pause > 0:
		return pause
	case due && free > 0:
		return 0
	case running == 0:
		return r.pollDelay(ctx)
	default:
		return pollInterval
	}
}

func logFailure(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "delivery of outbox notes to Temporal failed", "error", err)
	}
}

// await waits for the first of these events: a delivery has ended, PostgreSQL has notified the relay of new
// notes, the delay is over. await returns the results of all deliveries that have ended, and whether one of
// the other two events has happened.
func await(
	ctx context.Context,
	results <-chan result,
	wake <-chan struct{},
	delay time.Duration,
) (finished []result, woken bool) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
		woken = true
	case <-timer.C:
		woken = true
	case d := <-results:
		finished = append(finished, d)
	}
	for len(results) > 0 {
		finished = append(finished, <-results)
	}
	return finished, woken
}

// pollDelay returns how long the relay waits if no NOTIFY arrives: until the next note is due, but at most
// pollInterval.
func (r *Relay) pollDelay(ctx context.Context) time.Duration {
	next, ok, err := r.Store.NextDue(ctx)
	if err != nil || !ok {
		return pollInterval
	}
	return min(next, pollInterval)
}

// listen calls the function `wake` at each NOTIFY about new notes. listen reconnects when the connection to
// PostgreSQL is lost.
func (r *Relay) listen(ctx context.Context, wake func()) {
	for ctx.Err() == nil {
		err := r.Store.Listen(ctx, wake)
		if ctx.Err() != nil {
			return
		}
		slog.WarnContext(ctx, "LISTEN connection lost; polling the outbox", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}
