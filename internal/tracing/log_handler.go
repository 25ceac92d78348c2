package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogHandler returns a handler that adds the IDs of the context's request and trace to each log message:
// request_id, global_request_id, trace_id and span_id.
func NewLogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	ids, span := RequestIDsOf(ctx), trace.SpanContextFromContext(ctx)
	if ids.ID != "" || span.IsValid() {
		r = r.Clone()
	}
	if ids.ID != "" {
		r.AddAttrs(slog.String("request_id", ids.ID))
	}
	if ids.Global != "" {
		r.AddAttrs(slog.String("global_request_id", ids.Global))
	}
	if span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()),
			slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
