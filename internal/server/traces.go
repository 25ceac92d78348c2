package server

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/config"
	"berth/internal/tracing"
	"berth/internal/version"
)

// openTraces starts to send the traces of the process, if the settings name a receiver.
func openTraces(t config.Traces) (*tracing.Traces, error) {
	return tracing.Open(tracing.Options{
		Endpoint: t.Endpoint(),
		Headers:  t.Headers,
		Sampler:  t.Sampler,
		Ratio:    t.Ratio,
		Service:  t.Service,
		Version:  version.Read().Version,
	})
}

// observeCall gives an RPC call over RabbitMQ a request ID, and starts the span of the call. The span
// continues the trace of the message's header traceparent. The returned function ends the span.
func (a *App) observeCall(ctx context.Context, c oslomsg.Call) (context.Context, func(failure string)) {
	ctx = tracing.WithRequestIDs(ctx,
		tracing.RequestIDs{ID: "req-" + uuid.NewString(), Global: tracing.ValidRequestID(c.RequestID)})
	if !a.traces.On() {
		return ctx, func(string) {}
	}
	ctx = tracing.WithTraceparent(ctx, c.Traceparent)
	ctx, span := a.traces.Tracer().Start(ctx, "rpc "+c.Method,
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("messaging.system", "rabbitmq"),
			attribute.String("rpc.method", c.Method),
		))
	return ctx, func(failure string) {
		if failure != "" {
			span.SetStatus(codes.Error, failure)
		}
		span.End()
	}
}
