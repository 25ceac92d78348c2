package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/metricstore"
)

// newBlockCollector returns the collector of the metrics of provisioning blocks and of agents.
func newBlockCollector(s *metricstore.Store) prometheus.Collector {
	blocks := newGauge(
		"berth_port_blocks",
		"Provisioning blocks of ports and trunks, by entity (DHCP, L2, other) and age.",
		"entity",
		"age",
	)
	oldest := newGauge(
		"berth_port_block_oldest_seconds",
		"Age of the oldest provisioning block, in seconds, by entity (DHCP, L2, other); 0 without a block.",
		"entity",
	)
	agents := newGauge(
		"berth_agents",
		"Agents by state: up (reports regularly), down (silent for longer than 75 seconds), disabled (by an operator).",
		"state",
	)
	return &queryCollector{
		"blocks",
		[]*prometheus.Desc{blocks, oldest, agents},
		func(ctx context.Context, send func(*prometheus.Desc, float64, ...string)) error {
			all, err := s.BlockAges(ctx)
			if err != nil {
				return err
			}
			for _, b := range all {
				send(blocks, float64(b.UnderMinute), b.Entity, "under_1m")
				send(blocks, float64(b.UnderTenMinutes), b.Entity, "1m_to_10m")
				send(blocks, float64(b.Older), b.Entity, "over_10m")
				send(oldest, b.Oldest.Seconds(), b.Entity)
			}
			counts, err := s.CountAgents(ctx)
			if err != nil {
				return err
			}
			send(agents, float64(counts.Up), "up")
			send(agents, float64(counts.Down), "down")
			send(agents, float64(counts.Disabled), "disabled")
			return nil
		},
	}
}
