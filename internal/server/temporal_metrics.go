package server

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// sdkBuckets are the upper limits of the buckets of the SDK's durations, in seconds. The defaults of
// OpenTelemetry are made for milliseconds.
var sdkBuckets = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60}

// newSDKMetrics registers the metrics of Temporal's SDK.
func newSDKMetrics(registry prometheus.Registerer) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry),
		otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("create the metrics of Temporal's SDK: %w", err)
	}
	buckets := metric.NewView(metric.Instrument{Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: sdkBuckets}})
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: metric.NewMeterProvider(metric.WithReader(exporter), metric.WithView(buckets)).
			Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { slog.Warn("recording a metric of Temporal's SDK failed", "error", err) },
	}), nil
}

// withHelp adds a help text to the metrics of Temporal's SDK, which the SDK exports without one.
type withHelp struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (g withHelp) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	for _, f := range families {
		if f.GetHelp() == "" {
			words := strings.ReplaceAll(strings.TrimPrefix(f.GetName(), "temporal_"), "_", " ")
			text := "Metric of Temporal's Go SDK: " + words + "."
			f.Help = &text
		}
	}
	return families, err
}
