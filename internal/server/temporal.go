package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
)

// environment is the process's environment for Temporal's envconfig.
type environment []string

// Environ is the whole of it.
func (e environment) Environ() []string { return e }

// LookupEnv finds one variable.
func (e environment) LookupEnv(name string) (string, bool) {
	for _, pair := range e {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// dial makes the process's one client. Relay and workers share it, since a workflow starts eagerly only on a
// worker of the client that starts it. It connects when it is first used, so that a process may start before
// Temporal does. The namespace is the client's. The seat is where the process runs; see inherit.
func dial(env environment, registry prometheus.Registerer, seat string) (c client.Client, namespace string, err error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: env})
	if err != nil {
		return nil, "", fmt.Errorf("how to reach Temporal: %w", err)
	}
	options.Logger = log.NewStructuredLogger(slog.Default())
	if options.MetricsHandler, err = sdkMetrics(registry); err != nil {
		return nil, "", err
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	if loopback(options.HostPort) {
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // costs more than it saves there
	}
	if seat != "" {
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(inherit(seat)))
	}
	c, err = client.NewLazyClient(options)
	return c, options.Namespace, err
}

func loopback(address string) bool {
	return address == "" || strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "localhost:") || strings.HasPrefix(address, "[::1]:")
}

func sdkMetrics(registry prometheus.Registerer) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics of Temporal: %w", err)
	}
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                metric.NewMeterProvider(metric.WithReader(exporter)).Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { slog.Warn("metrics of Temporal", "error", err) },
	}), nil
}

// awaitTemporal asks until Temporal answers: a process that starts before its neighbours waits for them.
func awaitTemporal(ctx context.Context, c client.Client) error {
	told := false
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.CheckHealth(attempt, &client.CheckHealthRequest{})
		cancel()
		if err == nil {
			return nil
		}
		if !told {
			slog.WarnContext(ctx, "waiting for Temporal", "error", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}
