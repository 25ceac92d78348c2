package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/metricstore"
)

// newDeliveryCollector returns the collector of the metrics of recorded messages that wait for their delivery
// to another service.
func newDeliveryCollector(s *metricstore.Store) prometheus.Collector {
	pending := newGauge(
		"berth_deliveries_pending",
		"Recorded messages that are not delivered, by kind: events for Nova (nova), notifications to agents (agents), notifications of leases and of provisioning for the webhooks (lease_webhook, provisioning_webhook). At most 10,000 messages of each kind are counted.",
		"kind",
	)
	oldest := newGauge(
		"berth_delivery_oldest_seconds",
		"Age of the oldest recorded message that is not delivered, in seconds, by kind; 0 without a message.",
		"kind",
	)
	return &queryCollector{
		"deliveries",
		[]*prometheus.Desc{pending, oldest},
		func(ctx context.Context, send func(*prometheus.Desc, float64, ...string)) error {
			all, err := s.Pending(ctx)
			if err != nil {
				return err
			}
			for _, p := range all {
				send(pending, float64(p.Messages), p.Kind)
				send(oldest, p.Oldest.Seconds(), p.Kind)
			}
			return nil
		},
	}
}
