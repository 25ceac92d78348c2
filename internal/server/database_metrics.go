package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/db"
)

// databaseCollector reports the connections of this process to the database, and the repeated transactions.
type databaseCollector struct {
	db                                           *db.DB
	connections, limit, waiting, waits, waitTime *prometheus.Desc
	retries, hung                                *prometheus.Desc
}

func newDatabaseCollector(d *db.DB) *databaseCollector {
	return &databaseCollector{
		db: d,
		connections: newGauge(
			"berth_db_connections",
			"Connections of this process to PostgreSQL, by pool and state (used, idle).",
			"pool",
			"state",
		),
		limit: newGauge(
			"berth_db_connections_limit", "Maximum number of connections of a pool.", "pool",
		),
		waiting: newGauge(
			"berth_db_waiting_callers",
			"Transactions and statements that wait for a connection now, by pool.",
			"pool",
		),
		waits: newGauge(
			"berth_db_connection_waits_total",
			"Transactions and statements that had to wait for a connection, by pool.",
			"pool",
		),
		waitTime: newGauge(
			"berth_db_connection_wait_seconds_total",
			"Time for which transactions and statements have waited for a connection, in seconds, by pool.",
			"pool",
		),
		retries: newGauge(
			"berth_db_transaction_retries_total",
			"Transactions that were repeated, by reason: deadlock, serialization (both reported by PostgreSQL), overtaken (another writer has created the same row first).",
			"reason",
		),
		hung: newGauge(
			"berth_db_hung",
			"1 while PostgreSQL answers neither operations nor probes, so that every API request is answered with 503.",
		),
	}
}

// Describe implements prometheus.Collector.
func (c *databaseCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connections, c.limit, c.waiting, c.waits, c.waitTime, c.retries, c.hung} {
		all <- d
	}
}

// Collect implements prometheus.Collector. Collect does not access the database.
func (c *databaseCollector) Collect(all chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, p := range c.db.Pools() {
		send(c.connections, prometheus.GaugeValue, float64(p.Used), p.Name, "used")
		send(c.connections, prometheus.GaugeValue, float64(p.Idle), p.Name, "idle")
		send(c.limit, prometheus.GaugeValue, float64(p.Limit), p.Name)
		send(c.waiting, prometheus.GaugeValue, float64(p.Waiting), p.Name)
		send(c.waits, prometheus.CounterValue, float64(p.Waits), p.Name)
		send(c.waitTime, prometheus.CounterValue, p.WaitTime.Seconds(), p.Name)
	}
	hung := 0.0
	if c.db.Hangs() {
		hung = 1
	}
	send(c.hung, prometheus.GaugeValue, hung)
	for reason, n := range c.db.Retries() {
		send(c.retries, prometheus.CounterValue, float64(n), reason)
	}
}
