package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"berth/internal/config"
	"berth/internal/payloadcodec"
	"berth/internal/relay"
	"berth/internal/tracing/temporaltrace"
)

// environment contains the variables of the process as NAME=value pairs. environment implements
// envconfig.EnvLookup.
type environment []string

// Environ returns all NAME=value pairs of the environment.
func (e environment) Environ() []string { return e }

// LookupEnv returns the value of an environment variable.
func (e environment) LookupEnv(name string) (string, bool) { return config.LookupEnv(e, name) }

// dialTemporal creates the only Temporal client of the process. The relay and the Temporal workers share
// one client, because Temporal's eager start of a workflow works only on a worker of the client that starts
// the workflow. The client connects at its first call, so that the process may start before the Temporal
// server.
func (a *App) dialTemporal(ctx context.Context, env environment) error {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: env})
	if err != nil {
		return fmt.Errorf("load the settings of Temporal's client: %w", err)
	}
	if strings.Contains(options.HostPort, "@") { // a message that names the address would contain a password
		return errors.New("TEMPORAL_ADDRESS must be host:port, without a user")
	}
	options.Logger = log.NewStructuredLogger(slog.Default())
	if options.MetricsHandler, err = newSDKMetrics(a.registry); err != nil {
		return err
	}
	if a.codec, err = openCodec(ctx, a.cfg.Encryption); err != nil {
		return err
	}
	a.codec.Apply(&options)
	if a.traces.On() {
		i, err := temporaltrace.New(a.traces.Tracer())
		if err != nil {
			return fmt.Errorf("trace the calls to Temporal: %w", err)
		}
		options.Interceptors = append(options.Interceptors, i) // the workers of this client use it, too
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	if options.Identity == "" {
		options.Identity = workerIdentity()
	}
	if isLoopback(options.HostPort) {
		// On the loopback interface, compression costs more CPU time than the smaller messages save.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(relay.SingleAttempts))
	if slot := workerSlot(a.cfg.Listen, deploymentOptions(a.cfg.WorkerDeployment)); slot != "" {
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
			grpc.WithChainUnaryInterceptor(takeOverStickyQueue(slot)))
	}
	a.namespace = options.Namespace
	a.Temporal, err = client.NewLazyClient(options)
	return err
}

// openCodec returns the codec of the payloads in Temporal, and logs the ID of the key that encrypts.
func openCodec(ctx context.Context, e config.Encryption) (payloadcodec.Codec, error) {
	c, err := payloadcodec.New(e.Keys, !e.DecryptOnly)
	if err != nil {
		return c, fmt.Errorf("%s: %w", payloadcodec.Setting, err)
	}
	if c.HasKeys() {
		slog.InfoContext(ctx, "encryption of payloads in Temporal", "key", cmp.Or(c.EncryptsWith(), "off"))
	}
	return c, nil
}

// hidesProjects reports whether the search attributes of workflows contain no projects. Temporal stores
// search attributes in clear text, so they contain none if berth encrypts payloads.
func (a *App) hidesProjects() bool { return a.codec.EncryptsWith() != "" }

func isLoopback(address string) bool {
	return address == "" || strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "localhost:") ||
		strings.HasPrefix(address, "[::1]:")
}

// awaitTemporal waits until Temporal answers.
func awaitTemporal(ctx context.Context, c client.Client) error {
	failures := failureLog{message: "waiting for Temporal"}
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.CheckHealth(attempt, &client.CheckHealthRequest{})
		cancel()
		if err == nil {
			return nil
		}
		failures.add(ctx, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}
