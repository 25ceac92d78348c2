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

	"berth/internal/relay"
)

// environment contains the variables of the process as NAME=value pairs. environment implements envconfig.EnvLookup. If a name occurs in
// two pairs, the first pair counts.
type environment []string

// Environ returns all NAME=value pairs of the environment.
func (e environment) Environ() []string { return e }

// LookupEnv returns the value of an environment variable.
func (e environment) LookupEnv(name string) (string, bool) {
	for _, pair := range e {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// dialTemporal returns the only Temporal client of the process, and the namespace of the client. The relay and the Temporal workers share
// one client, because Temporal's eager start of a workflow works only on a worker of the client that starts the workflow. The client
// connects at its first call, so that the process may start before the Temporal server. The parameter `slot` is the result of workerSlot.
func dialTemporal(env environment, registry prometheus.Registerer, slot string) (c client.Client, namespace string, err error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: env})
	if err != nil {
		return nil, "", fmt.Errorf("load the settings of Temporal's client: %w", err)
	}
	options.Logger = log.NewStructuredLogger(slog.Default())
	if options.MetricsHandler, err = newSDKMetrics(registry); err != nil {
		return nil, "", err
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	if isLoopback(options.HostPort) {
		// On the loopback interface, compression costs more CPU time than the smaller messages save.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(relay.SingleAttempts))
	if slot != "" {
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(takeOverStickyQueue(slot)))
	}
	c, err = client.NewLazyClient(options)
	return c, options.Namespace, err
}

func isLoopback(address string) bool {
	return address == "" || strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "localhost:") || strings.HasPrefix(address, "[::1]:")
}

// newSDKMetrics registers the metrics of Temporal's SDK.
func newSDKMetrics(registry prometheus.Registerer) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("create the metrics of Temporal's SDK: %w", err)
	}
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                metric.NewMeterProvider(metric.WithReader(exporter)).Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { slog.Warn("recording a metric of Temporal's SDK failed", "error", err) },
	}), nil
}

// awaitTemporal waits until Temporal answers.
func awaitTemporal(ctx context.Context, c client.Client) error {
	logged := false
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.CheckHealth(attempt, &client.CheckHealthRequest{})
		cancel()
		if err == nil {
			return nil
		}
		if !logged {
			slog.WarnContext(ctx, "waiting for Temporal", "error", err)
			logged = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}
