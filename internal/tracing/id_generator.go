package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

type spanIDKey struct{}

// WithSpanID returns a context in which the next span gets the given ID.
func WithSpanID(ctx context.Context, id trace.SpanID) context.Context {
	return context.WithValue(ctx, spanIDKey{}, id)
}

// SpanIDOf returns a span ID that depends only on the texts. Code that Temporal replays uses it, because a
// replay must compute the same span ID again.
func SpanIDOf(texts ...string) (id trace.SpanID) {
	hash := sha256.New()
	for _, text := range texts {
		hash.Write([]byte(text))
		hash.Write([]byte{0})
	}
	copy(id[:], hash.Sum(nil))
	return id
}

// idGenerator makes random IDs, except for the spans of WithSpanID.
type idGenerator struct{}

// NewIDs returns the IDs of a new trace and of its first span.
func (g idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	// not zero, because an ID of zeros is invalid
	binary.NativeEndian.PutUint64(id[8:], 1+rand.Uint64N(1<<63))
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID returns the ID of the next span of a trace.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if id, ok := ctx.Value(spanIDKey{}).(trace.SpanID); ok {
		return id
	}
	var id trace.SpanID
	binary.NativeEndian.PutUint64(id[:], 1+rand.Uint64N(1<<63))
	return id
}
