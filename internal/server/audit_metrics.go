package server

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/mirrorstore"
)

// auditCollector reads the result of the last audit of the controller from the database at each scrape.
type auditCollector struct {
	store                *mirrorstore.Store
	differences, audited *prometheus.Desc
}

func newAuditCollector(s *mirrorstore.Store) *auditCollector {
	return &auditCollector{
		store: s,
		differences: prometheus.NewDesc(
			"berth_controller_differences",
			"Objects that the last audit found to be missing, different or extra at the OpenDaylight controller, by kind.",
			[]string{"kind"},
			nil,
		),
		audited: prometheus.NewDesc(
			"berth_controller_audited_timestamp_seconds",
			"Unix time at which the last audit of the OpenDaylight controller ended.", nil, nil,
		),
	}
}

// Describe implements prometheus.Collector.
func (c *auditCollector) Describe(all chan<- *prometheus.Desc) {
	all <- c.differences
	all <- c.audited
}

// Collect implements prometheus.Collector. Before the first audit, and if the database does not answer, the
// metrics of auditCollector are missing from the response to the scrape.
func (c *auditCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(db.WithReserve(context.Background()), checkTimeout)
	defer cancel()
	audit, err := c.store.LastDone(ctx, contract.KeyAudit)
	if err != nil {
		slog.Warn("reading the last audit from the database failed", "error", err)
		return
	}
	if audit.FinishedAt == nil {
		return
	}
	missing, different, extra := audit.Differences()
	for kind, n := range map[string]int{journal.Missing: missing, journal.Different: different, journal.Extra: extra} {
		all <- prometheus.MustNewConstMetric(c.differences, prometheus.GaugeValue, float64(n), kind)
	}
	all <- prometheus.MustNewConstMetric(c.audited, prometheus.GaugeValue, float64(audit.FinishedAt.UnixMilli())/1000)
}
