package osapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"berth/internal/identity"
	"berth/internal/store"
)

// Error is a refusal on its way to a client, before it takes the shape that the client's API promises.
type Error struct {
	Status  int    // HTTP status
	Type    string // the API's own name for it: Neutron's type, Placement's code; may be empty
	Message string // for the client; never an inside detail
	Allow   string // the Allow header of a 405
}

func (e *Error) Error() string { return e.Message }

// Fault makes an Error with a formatted message.
func Fault(status int, typ, format string, args ...any) *Error {
	return &Error{Status: status, Type: typ, Message: fmt.Sprintf(format, args...)}
}

// maxMessage is how long a refusal's words may be, in bytes. Some repeat what the client sent, which may be long.
const maxMessage = 2048

// brief cuts a refusal that is too long in its middle: what is wrong stands at its beginning or at its end.
func brief(e *Error) *Error {
	if len(e.Message) <= maxMessage {
		return e
	}
	short, end := *e, len(e.Message)-maxMessage/2
	short.Message = strings.ToValidUTF8(e.Message[:maxMessage/2], "") + "…" + strings.ToValidUTF8(e.Message[end:], "")
	return &short
}

// statusOf is the one table from any error to what the client is told. Unknown errors become a 500 with the
// request's ID; the log carries the truth.
func statusOf(ctx context.Context, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, identity.ErrUnauthenticated):
		return Fault(http.StatusUnauthorized, "", "The request you have made requires authentication.")
	case errors.Is(err, identity.ErrUnavailable):
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "caller unknown", "request_id", RequestID(ctx), "error", err)
		}
		return Fault(http.StatusServiceUnavailable, "", "The identity service cannot be reached. Try again later.")
	case errors.Is(err, store.ErrNotFound):
		return Fault(http.StatusNotFound, "", "%s", err)
	case errors.Is(err, store.ErrConflict):
		return Fault(http.StatusConflict, "", "%s", err)
	default:
		if ctx.Err() == nil {
			slog.ErrorContext(ctx, "request failed", "request_id", RequestID(ctx), "error", err)
		}
		return Fault(http.StatusInternalServerError, "", "The server failed to perform the requested operation (%s).", RequestID(ctx))
	}
}
