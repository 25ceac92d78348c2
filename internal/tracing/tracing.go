// Package tracing sends OpenTelemetry traces, and carries the IDs of a request through the program: its trace
// and its request IDs. The parts of a request that run later, such as the delivery of a note, continue the
// trace of the request. Package tracing starts a span only as a part of a sampled trace, so that the other
// requests cost nothing.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"berth/internal/text"
)

// Options configure the traces of a process.
type Options struct {
	Endpoint string            // URL to which traces are sent with OTLP over HTTP; empty: no traces
	Headers  map[string]string // headers of the requests to the endpoint
	Sampler  string            // a value of OTEL_TRACES_SAMPLER
	Ratio    float64           // share of the traces that the samplers with the name traceidratio select
	Service  string            // name of the service in each span
	Version  string            // version of the service in each span
	// CloseTimeout is how long Close waits for the receiver. If it is 0, the default (3 s) is used.
	CloseTimeout time.Duration
}

// Traces sends the traces of a process. The zero value sends nothing.
type Traces struct {
	provider     *sdktrace.TracerProvider // nil: no traces
	closeTimeout time.Duration
}

const (
	defaultCloseTimeout = 3 * time.Second
	// maxAnswer is the largest answer of the receiver that is read, in bytes.
	maxAnswer = 64 << 10
	// maxAttribute is the largest text of an attribute of a span, in characters. Most attributes have limits
	// of their own; SQL statements, the longest ones, have 1,000.
	maxAttribute = 1000
	// maxErrorText is the maximum number of characters of an error in the log, because the error contains the
	// answer of the receiver.
	maxErrorText = 500
)

// Open starts to send traces. Open does not wait for the receiver: while the receiver is away, berth drops
// the spans that exceed the queue of the exporter, and no request waits.
func Open(o Options) (*Traces, error) {
	if o.Endpoint == "" {
		return &Traces{}, nil
	}
	logErrors()
	exporter, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithHeaders(o.Headers),
		otlptracehttp.WithProxy(proxyUnlessRedirected), otlptracehttp.WithMaxResponseSize(maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", o.Endpoint, err)
	}
	host, _ := os.Hostname()
	about := resource.NewSchemaless(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version),
		attribute.String("host.name", host), attribute.Int("process.pid", os.Getpid()),
	)
	if about, err = resource.Merge(about, resource.Environment()); err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	limits := sdktrace.NewSpanLimits() // of the standard variables
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > maxAttribute {
		limits.AttributeValueLengthLimit = maxAttribute
	}
	return &Traces{
		provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about),
			sdktrace.WithSampler(o.sampler()), sdktrace.WithIDGenerator(idGenerator{}),
			sdktrace.WithRawSpanLimits(limits)),
		closeTimeout: cmp.Or(o.CloseTimeout, defaultCloseTimeout),
	}, nil
}

// errRedirect means that the receiver redirects a request.
var errRedirect = errors.New("the receiver answers with a redirect, which berth does not follow")

// proxyUnlessRedirected returns the proxy for a request. It refuses a request that follows a redirect,
// because the request contains the spans and the headers for the receiver. The exporter has no other option
// that refuses redirects and leaves the certificates and the timeout of the standard variables in force.
func proxyUnlessRedirected(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errRedirect
	}
	return http.ProxyFromEnvironment(r)
}

func (o Options) sampler() sdktrace.Sampler {
	switch o.Sampler {
	case "always_on":
		return sdktrace.AlwaysSample()
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(o.Ratio)
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Ratio))
	default:
		return sdktrace.ParentBased(sdktrace.AlwaysSample())
	}
}

// logErrors makes OpenTelemetry write its errors, for example about a missing receiver, to the log.
var logErrors = sync.OnceFunc(func() {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		slog.Warn("sending traces failed; spans are lost", "error", text.Excerpt(err.Error(), maxErrorText))
	}))
})

// On reports whether the process sends traces.
func (t *Traces) On() bool { return t.provider != nil }

// Tracer returns the tracer of the process. Without traces, its spans do nothing.
func (t *Traces) Tracer() trace.Tracer {
	if t.provider == nil {
		return noop.NewTracerProvider().Tracer("berth")
	}
	return t.provider.Tracer("berth")
}

// Close sends the spans that wait, and gives up after Options.CloseTimeout if the receiver does not answer.
func (t *Traces) Close() {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		slog.Warn("the last spans were not sent", "error", text.Excerpt(err.Error(), maxErrorText))
	}
}

// w3c reads and writes the headers traceparent and tracestate.
var w3c propagation.TraceContext

// WithTraceparent returns a context whose spans continue the trace of a traceparent. An empty or invalid
// traceparent changes nothing.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return w3c.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// Traceparent returns the traceparent of the context's span, or "" if the span is not sampled.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// Start starts a span below the context's span. If the context has no sampled span of this process, Start
// returns the context and a span that does nothing.
func Start(
	ctx context.Context,
	name string,
	kind trace.SpanKind,
	attributes ...attribute.KeyValue,
) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer("berth").Start(ctx, name,
		trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// Continue starts a span below a span of another process, whose traceparent WithTraceparent has stored in the
// context. If that span is missing or not sampled, Continue returns the context and a span that does nothing.
func Continue(
	ctx context.Context,
	t trace.Tracer,
	name string,
	kind trace.SpanKind,
	attributes ...attribute.KeyValue,
) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, noop.Span{}
	}
	return t.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// End ends a span. If err is not nil, the span has failed.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, text.Excerpt(err.Error(), maxErrorText))
	}
	span.End()
}
