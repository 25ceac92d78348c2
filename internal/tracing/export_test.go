package tracing

import sdktrace "go.opentelemetry.io/otel/sdk/trace"

// WithIDs makes a provider generate the IDs of berth.
func WithIDs() sdktrace.TracerProviderOption { return sdktrace.WithIDGenerator(idGenerator{}) }
