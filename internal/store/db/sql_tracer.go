package db

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"berth/internal/text"
)

// maxTracedSQL is the maximum number of characters of an SQL statement in a span.
const maxTracedSQL = 1000

// sqlTracer makes a span of each SQL statement and of each batch that belongs to a sampled trace. The spans
// contain the text of a statement, but not its arguments. Without a sampled trace, sqlTracer allocates
// nothing.
type sqlTracer struct{}

type sqlSpanKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (sqlTracer) TraceQueryStart(
	ctx context.Context,
	_ *pgx.Conn,
	data pgx.TraceQueryStartData,
) context.Context {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx
	}
	return startSQLSpan(ctx, parent, firstWord(data.SQL),
		attribute.String("db.query.text", shortSQL(data.SQL)))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (sqlTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	endSQLSpan(ctx, data.Err)
}

// TraceBatchStart implements pgx.BatchTracer.
func (sqlTracer) TraceBatchStart(
	ctx context.Context,
	_ *pgx.Conn,
	data pgx.TraceBatchStartData,
) context.Context {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx
	}
	return startSQLSpan(ctx, parent, "batch",
		attribute.Int("db.operation.batch.size", len(data.Batch.QueuedQueries)))
}

// TraceBatchQuery implements pgx.BatchTracer. Each statement of a batch is an event of the span of the batch,
// because PostgreSQL gets the statements together.
func (sqlTracer) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if span, ok := ctx.Value(sqlSpanKey{}).(trace.Span); ok {
		span.AddEvent(firstWord(data.SQL),
			trace.WithAttributes(attribute.String("db.query.text", shortSQL(data.SQL))))
	}
}

// TraceBatchEnd implements pgx.BatchTracer.
func (sqlTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	endSQLSpan(ctx, data.Err)
}

func startSQLSpan(
	ctx context.Context,
	parent trace.Span,
	name string,
	about attribute.KeyValue,
) context.Context {
	ctx, span := parent.TracerProvider().Tracer("berth").Start(ctx, "SQL "+name,
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "postgresql"), about))
	return context.WithValue(ctx, sqlSpanKey{}, span)
}

func endSQLSpan(ctx context.Context, err error) {
	span, ok := ctx.Value(sqlSpanKey{}).(trace.Span)
	if !ok {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// firstWord returns the first word of an SQL statement, such as select.
func firstWord(sql string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(sql, " \t\n"), " ")
	return strings.TrimSpace(text.Excerpt(word, 20))
}

// shortSQL returns an SQL statement without line breaks and indentation, and at most maxTracedSQL characters
// of it.
func shortSQL(sql string) string {
	return text.Excerpt(strings.Join(strings.Fields(sql), " "), maxTracedSQL)
}
