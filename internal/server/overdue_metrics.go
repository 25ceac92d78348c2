package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/reportstore"
)

// newOverdueCollector returns the collector of the metrics of objects whose time has passed.
func newOverdueCollector(s *reportstore.Store) prometheus.Collector {
	objects := newGauge(
		"berth_overdue_objects",
		"Objects that should have made progress by now, by kind (port, trunk, agent, lease, entry, run, note). At most 5,000 objects of each kind are counted.",
		"kind",
	)
	longest := newGauge(
		"berth_overdue_seconds",
		"For how long the most overdue object should have made progress, in seconds, by kind; 0 if no object is overdue.",
		"kind",
	)
	return &queryCollector{
		"overdue objects",
		[]*prometheus.Desc{objects, longest},
		func(ctx context.Context, send func(*prometheus.Desc, float64, ...string)) error {
			all, err := s.Overdue(ctx)
			if err != nil {
				return err
			}
			worst := map[string]reportstore.OverdueObject{}
			for _, o := range all {
				if _, ok := worst[o.Kind]; !ok {
					worst[o.Kind] = o
				}
			}
			for _, kind := range reportstore.OverdueKinds {
				send(objects, float64(worst[kind].Count), kind)
				send(longest, worst[kind].For.Seconds(), kind)
			}
			return nil
		},
	}
}
