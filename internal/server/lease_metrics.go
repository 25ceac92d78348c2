package server

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/db"
	"berth/internal/store/leasestore"
)

// leaseCollector reads from the database, at each scrape, how much work on leases is held up.
type leaseCollector struct {
	store                                                              *leasestore.Store
	quarantined, poolChanges, leftovers, interruptedSteps, failingCall *prometheus.Desc
}

func newLeaseCollector(s *leasestore.Store) *leaseCollector {
	gauge := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &leaseCollector{
		store:            s,
		quarantined:      gauge("berth_hosts_quarantined", "Hosts that a lease keeps because its end has failed. `starter host list` names the lease and the failed call."),
		poolChanges:      gauge("berth_host_pool_changes", "Hosts whose change of the freepool Nova has not confirmed."),
		leftovers:        gauge("berth_reservation_leftovers", "Reservations of deleted leases that berth must still remove from Nova and Neutron."),
		interruptedSteps: gauge("berth_lease_steps_interrupted", "Steps of leases that a process has begun and not finished in time, and that no other process has taken over."),
		failingCall:      gauge("berth_reservations_failing", "Reservations whose last call of Nova, Neutron or the inventory failed. `starter why lease/ID` names the call."),
	}
}

// Describe implements prometheus.Collector.
func (c *leaseCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.quarantined, c.poolChanges, c.leftovers, c.interruptedSteps, c.failingCall} {
		all <- d
	}
}

// Collect implements prometheus.Collector. If the database does not answer, the metrics of leaseCollector are missing from the response to
// the scrape.
func (c *leaseCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(db.WithReserve(context.Background()), checkTimeout)
	defer cancel()
	u, err := c.store.Unfinished(ctx)
	if err != nil {
		slog.Warn("reading the metrics of the leases from the database failed", "error", err)
		return
	}
	for d, value := range map[*prometheus.Desc]int64{c.quarantined: u.Quarantined, c.poolChanges: u.PoolChanges, c.leftovers: u.Leftovers,
		c.interruptedSteps: u.Interrupted, c.failingCall: u.FailingCalls} {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value))
	}
}
