package tracing

import (
	"context"
	"regexp"
)

type requestIDKey struct{}

// RequestIDs are the IDs of a request in OpenStack's form: "req-" and a UUID.
type RequestIDs struct {
	ID string // berth has assigned this ID
	// the ID that the caller sent: the request of the service on whose behalf the caller acts; empty: none
	Global string
}

// WithRequestIDs returns a context that belongs to a request.
func WithRequestIDs(ctx context.Context, ids RequestIDs) context.Context {
	return context.WithValue(ctx, requestIDKey{}, ids)
}

// RequestIDsOf returns the IDs of the context's request; they are empty without a request.
func RequestIDsOf(ctx context.Context) RequestIDs {
	ids, _ := ctx.Value(requestIDKey{}).(RequestIDs)
	return ids
}

// requestID matches the request IDs that OpenStack's services accept from callers.
var requestID = regexp.MustCompile(
	`^req-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`,
)

// ValidRequestID returns the text if it is a request ID, otherwise "".
func ValidRequestID(text string) string {
	if len(text) > 40 || !requestID.MatchString(text) {
		return ""
	}
	return text
}
