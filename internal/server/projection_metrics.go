package server

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// projectionCollector reads from the database, at each scrape, how many workflow executions and search
// attributes in Temporal, and how many usages of inventories, differ from the rows of the database.
type projectionCollector struct {
	store                                *outbox.Store
	unattended, orphans, different, late *prometheus.Desc
	usage, comparedAt                    *prometheus.Desc
}

func newProjectionCollector(s *outbox.Store) *projectionCollector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &projectionCollector{
		store: s,
		unattended: gauge(
			"berth_unattended_rows",
			"Rows without an open workflow execution that the last comparison found. berth has restarted them.",
		),
		orphans: gauge(
			"berth_orphan_executions",
			"Open workflow executions without a row that the last comparison found. berth has nudged them, so that they look for their row and end.",
		),
		different: gauge(
			"berth_search_attribute_drift",
			"Open workflow executions whose search attributes differed from the row at the last comparison. berth has nudged them to read their row.",
		),
		usage: gauge(
			"berth_inventory_usage_drift",
			"Inventories whose usage differed from the sum of their allocations at the last comparison. berth has corrected them.",
		),
		late: gauge(
			"berth_due_late_seconds",
			"How long the most overdue start or end of a lease has been due, in seconds; 0 if none is overdue.",
		),
		comparedAt: gauge(
			"berth_projection_compared_timestamp_seconds",
			"Unix time at which the last comparison of the rows with a projection ended, by projection (executions, search attributes, usage).",
			"projection",
		),
	}
}

// Describe implements prometheus.Collector.
func (c *projectionCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.unattended, c.orphans, c.different, c.usage, c.late, c.comparedAt} {
		all <- d
	}
}

// Collect implements prometheus.Collector. If the database does not answer, only the metrics of
// projectionCollector are missing from the response to the scrape.
func (c *projectionCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(db.WithReserve(context.Background()), checkTimeout)
	defer cancel()
	found, err := c.store.Projections(ctx)
	if err != nil {
		slog.Warn("reading the metrics of the projections from the database failed", "error", err)
		return
	}
	late, err := c.store.Late(ctx)
	if err != nil {
		slog.Warn("reading the metrics of the projections from the database failed", "error", err)
		return
	}
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	send(c.late, late.Seconds())
	for _, p := range found {
		switch {
		case p.ComparedAt == nil:
			continue
		case p.Name == outbox.Executions:
			send(c.unattended, float64(p.Unattended))
			send(c.orphans, float64(p.Orphans))
		case p.Name == outbox.Usage:
			send(c.usage, float64(p.Different))
		default:
			send(c.different, float64(p.Different))
		}
		send(c.comparedAt, float64(p.ComparedAt.Unix()), p.Name)
	}
}
