package server

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/activities"
	"berth/internal/feedback"
	"berth/internal/journal"
	"berth/internal/odl"
	"berth/internal/store"
)

// watchJournal tells metrics of every attempt at the controller.
func watchJournal(o *activities.Options, controller *odl.Client, registry *prometheus.Registry) {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_journal_attempts_total",
		Help: "Attempts to mirror a journal entry, by what they came to.",
	}, []string{"outcome"})
	lag := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "berth_journal_lag_seconds",
		Help:    "Time from an entry's recording to the controller's having it.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 16),
	})
	registry.MustRegister(attempts, lag)
	o.Attempted = func(e journal.Entry, came journal.Outcome) {
		attempts.WithLabelValues(string(came.Kind)).Inc()
		if e.FinishedAt != nil {
			lag.Observe(e.FinishedAt.Sub(e.CreatedAt).Seconds())
		}
	}
	if controller != nil {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "berth_odl_breaker_open",
			Help: "1 while the controller is left alone because requests failed.",
		}, func() float64 {
			if controller.BreakerOpen() {
				return 1
			}
			return 0
		}))
	}
}

// watchFeedback tells metrics how many of the controller's streams this process hears.
func watchFeedback(l *feedback.Listener, registry *prometheus.Registry) {
	if l == nil {
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_odl_streams",
		Help: "Streams of the controller that this process hears; of several processes one does.",
	}, func() float64 { return float64(l.OpenStreams()) }))
}

// journalCollector reads the journal's state when it is asked for.
type journalCollector struct {
	store           *store.Store
	entries, oldest *prometheus.Desc
}

func newJournalCollector(s *store.Store) *journalCollector {
	return &journalCollector{
		store:   s,
		entries: prometheus.NewDesc("berth_journal_entries", "Journal entries that the controller has still to see.", []string{"state"}, nil),
		oldest:  prometheus.NewDesc("berth_journal_oldest_seconds", "Age of the oldest of them that has not failed.", nil, nil),
	}
}

// Describe is prometheus.Collector's.
func (c *journalCollector) Describe(all chan<- *prometheus.Desc) {
	all <- c.entries
	all <- c.oldest
}

// Collect is prometheus.Collector's. A database that is away costs these figures, not the others.
func (c *journalCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	j, err := c.store.JournalState(ctx)
	if err != nil {
		slog.Warn("metrics of the journal", "error", err)
		return
	}
	for state, n := range j.Live {
		all <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(n), string(state))
	}
	all <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, j.Oldest.Seconds())
}
