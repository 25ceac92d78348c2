package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/outbox"
)

// newMaintenanceCollector returns a collector that reads from the database, at each scrape, when each part of
// the periodic maintenance was last completed.
func newMaintenanceCollector(s *outbox.Store) *queryCollector {
	completed := newGauge(
		"berth_maintenance_completed_timestamp_seconds",
		"Unix time at which a part of the periodic maintenance was last completed, by part: sweep (lost workflows and old rows), controller (the check of the controller), healing (reservations), hosts (their states in Nova, only if berth monitors them).",
		"part",
	)
	return &queryCollector{
		what:  "maintenance",
		descs: []*prometheus.Desc{completed},
		read: func(ctx context.Context, send func(*prometheus.Desc, float64, ...string)) error {
			parts, err := s.Maintenance(ctx)
			for _, p := range parts {
				send(completed, float64(p.CompletedAt.Unix()), p.Part)
			}
			return err
		},
	}
}
