package server

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/db"
	"berth/internal/store/leasestore"
)

// leaseCollector reads from the database, at each scrape, how much work on leases is delayed or has failed.
type leaseCollector struct {
	store  *leasestore.Store
	gauges []leaseGauge
}

type leaseGauge struct {
	desc  *prometheus.Desc
	value func(leasestore.Unfinished) int64
}

func newLeaseCollector(s *leasestore.Store) *leaseCollector {
	gauge := func(name, help string, value func(leasestore.Unfinished) int64) leaseGauge {
		return leaseGauge{prometheus.NewDesc(name, help, nil, nil), value}
	}
	return &leaseCollector{s, []leaseGauge{
		gauge(
			"berth_hosts_quarantined",
			"Hosts that a lease keeps because its end has failed. `starter host list` names the lease and the failed call.",
			func(u leasestore.Unfinished) int64 { return u.Quarantined },
		),
		gauge(
			"berth_host_pool_changes",
			"Hosts that wait until Nova has added them to the aggregate freepool or removed them from it.",
			func(u leasestore.Unfinished) int64 { return u.PoolChanges },
		),
		gauge(
			"berth_reservation_leftovers",
			"Reservations of ended leases whose repeated removal from Nova and Neutron has failed or is five minutes late.",
			func(u leasestore.Unfinished) int64 { return u.Leftovers },
		),
		gauge(
			"berth_lease_steps_interrupted",
			"Steps of leases that a process has begun and not finished in time, and that no other process has taken over.",
			func(u leasestore.Unfinished) int64 { return u.Interrupted },
		),
		gauge(
			"berth_reservations_failing",
			"Reservations whose last call to Nova, Neutron, Keystone or Placement failed. `starter why lease/ID` names the call.",
			func(u leasestore.Unfinished) int64 { return u.FailingCalls },
		),
		gauge(
			"berth_hosts_down_together",
			"Hosts that Nova shows as down, and that keep their leases because too many are down at the same time.",
			func(u leasestore.Unfinished) int64 { return u.SuspendedHosts },
		),
	}}
}

// Describe implements prometheus.Collector.
func (c *leaseCollector) Describe(all chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		all <- g.desc
	}
}

// Collect implements prometheus.Collector. If the database does not answer, the metrics of leaseCollector are
// missing from the response to the scrape.
func (c *leaseCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(db.WithReserve(context.Background()), checkTimeout)
	defer cancel()
	u, err := c.store.Unfinished(ctx)
	if err != nil {
		slog.Warn("reading the metrics of the leases from the database failed", "error", err)
		return
	}
	for _, g := range c.gauges {
		all <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(g.value(u)))
	}
}
