package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/feedback"
	"berth/internal/identity"
	"berth/internal/journal"
	"berth/internal/lease"
	"berth/internal/odl"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/portstore"
)

// registerRefusalMetric registers the metric that counts refused reports: those that agents have sent to the
// workflows of ports.
func registerRefusalMetric(o *activities.Options, registry *prometheus.Registry) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_agent_reports_refused_total",
		Help: "Reports of agents over Temporal that were refused because of BERTH_AGENT_SIGNATURES=required, by reason.",
	}, []string{"reason"})
	for _, reason := range contract.Refusals {
		refused.WithLabelValues(string(reason))
	}
	registry.MustRegister(refused)
	o.OnRefusal = func(reason contract.Refusal) { refused.WithLabelValues(string(reason)).Inc() }
}

// registerJournalMetrics registers the metrics that count the attempts to send journal entries to the
// controller, and sets the callback that updates these metrics.
func registerJournalMetrics(o *activities.Options, controller *odl.Client, registry *prometheus.Registry) {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_journal_attempts_total",
		Help: "Attempts to send a journal entry to the OpenDaylight controller, by outcome.",
	}, []string{"outcome"})
	lag := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "berth_journal_lag_seconds",
		Help:    "Time from the creation of a journal entry until the OpenDaylight controller has applied it, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 16),
	})
	registry.MustRegister(attempts, lag)
	o.OnAttempt = func(e journal.Entry, outcome journal.Outcome) {
		attempts.WithLabelValues(string(outcome.Kind)).Inc()
		if e.FinishedAt != nil {
			lag.Observe(e.FinishedAt.Sub(e.CreatedAt).Seconds())
		}
	}
	if controller != nil {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "berth_odl_requests_in_flight",
			Help: "Requests that this process has sent to the OpenDaylight controller and that the controller has not answered yet. Requests that list objects are not counted.",
		}, func() float64 { return float64(controller.InFlight()) }))
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "berth_odl_breaker_open",
			Help: "1 while the OpenDaylight circuit breaker is open, otherwise 0.",
		}, func() float64 {
			if controller.BreakerOpen() {
				return 1
			}
			return 0
		}))
	}
}

// registerKeystoneMetrics registers the metrics of Keystone's circuit breaker and of refused tokens.
func registerKeystoneMetrics(k *identity.Keystone, registry *prometheus.Registry) {
	if k == nil {
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_keystone_breaker_open",
		Help: "1 while the Keystone circuit breaker of this process is open, otherwise 0.",
	}, func() float64 {
		if k.BreakerOpen() {
			return 1
		}
		return 0
	}), prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "berth_keystone_refused_total",
		Help: "Tokens and logins refused without a request to Keystone, because too many tokens from the address of the client are invalid or wait for their validation, or because the address has sent too many logins.",
	}, func() float64 { return float64(k.Refused()) }))
}

// newForeignReportsCounter returns the metric of reports about ports of other hosts.
func newForeignReportsCounter(s *portstore.Store) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "berth_agent_reports_foreign_total",
		Help: "Reports of the agents of one host, over HTTP or in its virtual host of RabbitMQ, that were ignored because they are about ports of other hosts.",
	}, func() float64 { return float64(s.ForeignReports()) })
}

// registerFeedbackMetrics registers the metric of the streams over which the controller sends notifications.
func registerFeedbackMetrics(l *feedback.Listener, registry *prometheus.Registry) {
	if l == nil {
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_odl_streams",
		Help: "Notification streams of the OpenDaylight controller that this process reads. Only one of several processes reads them.",
	}, func() float64 { return float64(l.OpenStreams()) }))
}

// journalCollector reads the state of the journal from the database at each scrape.
type journalCollector struct {
	store                   *store.Store
	entries, oldest, paused *prometheus.Desc
}

func newJournalCollector(s *store.Store) *journalCollector {
	return &journalCollector{
		store: s,
		entries: prometheus.NewDesc(
			"berth_journal_entries",
			"Journal entries that are not completed, by state.", []string{"state"}, nil,
		),
		oldest: prometheus.NewDesc(
			"berth_journal_oldest_seconds",
			"Age of the oldest journal entry that is neither completed nor failed, in seconds.",
			nil,
			nil,
		),
		paused: prometheus.NewDesc(
			"berth_journal_paused", "1 while the journal is paused, otherwise 0.", nil, nil,
		),
	}
}

// Describe implements prometheus.Collector.
func (c *journalCollector) Describe(all chan<- *prometheus.Desc) {
	all <- c.entries
	all <- c.oldest
	all <- c.paused
}

// Collect implements prometheus.Collector. If the database does not answer, only the metrics of
// journalCollector are missing from the response to the scrape.
func (c *journalCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(db.WithReserve(context.Background()), checkTimeout)
	defer cancel()
	j, err := c.store.Journal.JournalState(ctx)
	if err != nil {
		slog.Warn("reading the journal's metrics from the database failed", "error", err)
		return
	}
	for state, n := range j.Open {
		all <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(n), string(state))
	}
	all <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, j.Oldest.Seconds())
	pause, err := c.store.Journal.Paused(ctx)
	if err != nil {
		slog.Warn("reading the pause of the journal from the database failed", "error", err)
		return
	}
	paused := 0.0
	if pause != nil {
		paused = 1
	}
	all <- prometheus.MustNewConstMetric(c.paused, prometheus.GaugeValue, paused)
}

// newNoteCollector returns the collector of the metrics of the notes in the outbox.
func newNoteCollector(s *outbox.Store) prometheus.Collector {
	setAside := newGauge(
		"berth_notes_set_aside",
		"Outbox notes that are set aside because Temporal refuses them; `starter note list` shows the reasons.",
	)
	pending := newGauge(
		"berth_notes_pending",
		"Outbox notes that are due, or whose delivery to Temporal has failed, without those that are set aside.",
	)
	oldest := newGauge("berth_note_oldest_seconds",
		"Age of the oldest of the notes that berth_notes_pending counts, in seconds; 0 without a note.")
	return &queryCollector{
		"outbox notes",
		[]*prometheus.Desc{setAside, pending, oldest},
		func(ctx context.Context, send func(*prometheus.Desc, float64, ...string)) error {
			n, err := s.CountSetAside(ctx)
			if err != nil {
				return err
			}
			send(setAside, float64(n))
			backlog, err := s.Backlog(ctx)
			if err != nil {
				return err
			}
			send(pending, float64(backlog.Notes))
			send(oldest, backlog.Oldest.Seconds())
			return nil
		},
	}
}

// registerLatenessMetric registers the metric of the lateness of leases, and returns the callback that
// updates the metric.
func registerLatenessMetric(registry prometheus.Registerer) func(lease.Step, time.Duration) {
	late := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_lease_lateness_seconds",
		Help:    "Time from the date at which a lease had to start or end until the start or end was committed, in seconds, by step (start, end).",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300},
	}, []string{"step"})
	names := map[lease.Step]string{lease.StepStart: "start", lease.StepEnd: "end"}
	for _, name := range names {
		late.WithLabelValues(name)
	}
	registry.MustRegister(late)
	return func(step lease.Step, by time.Duration) { late.WithLabelValues(names[step]).Observe(by.Seconds()) }
}

// registerStoreMetrics registers the metrics whose values are in the database.
func (a *App) registerStoreMetrics() {
	s := a.store
	a.registry.MustRegister(newDatabaseCollector(s.DB), newOmittedDenialsCounter(s.Audit),
		newForeignReportsCounter(s.Network))
	for _, c := range []prometheus.Collector{
		newJournalCollector(s),
		newProjectionCollector(s.Outbox),
		newMaintenanceCollector(s.Outbox),
		newNoteCollector(s.Outbox),
		newAuditCollector(s.Mirror),
		newLeaseCollector(s.Lease),
		newBlockCollector(s.Metrics),
		newDeliveryCollector(s.Metrics),
		newOverdueCollector(s.Report),
		newAuditLogCollector(s.Audit),
	} {
		a.registry.MustRegister(&cachedCollector{Collector: c})
	}
}
