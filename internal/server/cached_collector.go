package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/store/db"
)

const (
	// minCacheTime is how long a cachedCollector keeps the values that it has read from the database.
	minCacheTime = 2 * time.Second
	// cacheShare limits the share of the time that the reading takes: a cachedCollector keeps values that
	// took a second to read for at least cacheShare seconds.
	cacheShare = 20
)

// cachedCollector is a collector that reads the values of metrics from the database. If several scrapes
// arrive within a short time, cachedCollector reads the database only once.
type cachedCollector struct {
	prometheus.Collector
	mu     sync.Mutex
	until  time.Time
	values []prometheus.Metric
}

// Collect implements prometheus.Collector.
func (c *cachedCollector) Collect(all chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begin := time.Now(); !begin.Before(c.until) {
		c.values = collect(c.Collector)
		end := time.Now()
		c.until = end.Add(max(minCacheTime, cacheShare*end.Sub(begin)))
	}
	for _, m := range c.values {
		all <- m
	}
}

// collect returns the values of a collector.
func collect(c prometheus.Collector) []prometheus.Metric {
	values, ended := make(chan prometheus.Metric), make(chan struct{})
	var all []prometheus.Metric
	go func() {
		defer close(ended)
		for m := range values {
			all = append(all, m)
		}
	}()
	c.Collect(values)
	close(values)
	<-ended
	return all
}

// queryCollector is a collector whose values come from one query of the database.
type queryCollector struct {
	what  string // for the log: the metrics of what
	descs []*prometheus.Desc
	// read sends the values. The parameter `send` takes a metric of descs, its value and the values of its
	// labels.
	read func(ctx context.Context, send func(d *prometheus.Desc, value float64, labels ...string)) error
}

// Describe implements prometheus.Collector.
func (c *queryCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		all <- d
	}
}

// Collect implements prometheus.Collector. If the database does not answer, the metrics of queryCollector are
// missing from the response to the scrape.
func (c *queryCollector) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(db.WithReserve(context.Background()), checkTimeout)
	defer cancel()
	err := c.read(ctx, func(d *prometheus.Desc, value float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	})
	if err != nil {
		slog.Warn("reading metrics from the database failed", "metrics", c.what, "error", err)
	}
}

// newGauge returns the description of a gauge.
func newGauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}
