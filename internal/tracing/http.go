package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"berth/internal/text"
)

// Maximum lengths, in characters, of the texts of a span that a client chooses. Clients without a token can
// make berth keep many spans, until they are sent to the receiver.
const (
	maxMethod = 20
	maxPath   = 500
)

// StartRequest starts the span of an HTTP request to this process. The span continues the trace of the
// request's traceparent, and names the request ID of the caller. The tracestate of the request ends here:
// each span and each outgoing request would repeat its up to 16 kB, which a client without a token can
// choose.
func (t *Traces) StartRequest(r *http.Request) (*http.Request, trace.Span) {
	ctx := WithTraceparent(r.Context(), r.Header.Get("Traceparent"))
	method := text.Excerpt(r.Method, maxMethod)
	ctx, span := t.Tracer().Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("http.request.method", method),
			attribute.String("url.path", text.Excerpt(r.URL.Path, maxPath)),
		),
	)
	if global := ValidRequestID(r.Header.Get("X-Openstack-Request-Id")); global != "" {
		span.SetAttributes(attribute.String("openstack.global_request_id", global))
	}
	return r.WithContext(ctx), span
}

// EndRequest ends the span of an HTTP request. The name of the span is the method and the route, that is, the
// path without values.
func EndRequest(span trace.Span, method, route string, status int, requestID string) {
	if !span.IsRecording() {
		return
	}
	span.SetName(text.Excerpt(method, maxMethod) + " " + route)
	span.SetAttributes(
		attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status),
		attribute.String("openstack.request_id", requestID),
	)
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	span.End()
}

// Transport returns a transport that sends the traceparent with each request of a sampled trace, and that
// makes a span of the request. serviceOf returns the name of the service that gets the request.
func Transport(next http.RoundTripper, serviceOf func(*http.Request) string) http.RoundTripper {
	return transport{next, serviceOf}
}

type transport struct {
	next      http.RoundTripper
	serviceOf func(*http.Request) string
}

// RoundTrip implements http.RoundTripper. The span ends with the header of the answer.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !trace.SpanFromContext(r.Context()).IsRecording() {
		return t.next.RoundTrip(r)
	}
	service := t.serviceOf(r)
	ctx, span := Start(
		r.Context(),
		r.Method+" "+service,
		trace.SpanKindClient,
		attribute.String("peer.service", service),
		attribute.String("http.request.method", r.Method),
		attribute.String("server.address", r.URL.Host),
		attribute.String("url.path", r.URL.Path),
	)
	r = r.Clone(ctx) // a RoundTripper must not change its request
	w3c.Inject(ctx, propagation.HeaderCarrier(r.Header))
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		span.SetAttributes(attribute.Int("http.response.status_code", answer.StatusCode))
		if answer.StatusCode >= http.StatusBadRequest {
			span.SetStatus(codes.Error, http.StatusText(answer.StatusCode))
		}
	}
	End(span, err)
	return answer, err
}

// InjectMap returns the headers traceparent and tracestate of the context's span. The map is nil if the span
// is not sampled.
func InjectMap(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier
}
