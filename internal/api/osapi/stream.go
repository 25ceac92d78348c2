package osapi

import (
	"context"
	"net/http"
)

// Stream is the body of a response that has no fixed end. The Stream writes the status, the headers and the body of the response. The
// context of r has the values of the request's context, but no deadline: it ends when the client disconnects. The Stream must itself set
// the deadlines of the connection, with http.NewResponseController.
type Stream func(w http.ResponseWriter, r *http.Request)

// endless is a context with the values of one context, and with the deadline and the cancellation of another.
type endless struct {
	context.Context                 // of the connection to the client
	values          context.Context // of the request
}

// Value implements context.Context.
func (c endless) Value(key any) any { return c.values.Value(key) }
