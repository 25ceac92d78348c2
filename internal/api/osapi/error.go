package osapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"berth/internal/identity"
	"berth/internal/store/db"
)

// Error holds the values of an error response. Each API encodes an Error in its own JSON format.
type Error struct {
	Status  int    // HTTP status
	Type    string // the API's own name for the error, such as Neutron's type or Placement's code; may be empty
	Message string // for the client, without internal details
	Allow   string // the Allow header of a 405
}

func (e *Error) Error() string { return e.Message }

// Fault returns an Error with a formatted message.
func Fault(status int, typ, format string, args ...any) *Error {
	return &Error{Status: status, Type: typ, Message: fmt.Sprintf(format, args...)}
}

// maxMessage is the maximum length of an error message, in bytes. maxMessage is necessary because some error messages repeat client input
// of any length.
const maxMessage = 2048

// shorten removes the middle of a message that is too long. shorten keeps the beginning and the end of the message, because both describe
// the error.
func shorten(e *Error) *Error {
	if len(e.Message) <= maxMessage {
		return e
	}
	short, end := *e, len(e.Message)-maxMessage/2
	short.Message = strings.ToValidUTF8(e.Message[:maxMessage/2], "") + "…" + strings.ToValidUTF8(e.Message[end:], "")
	return &short
}

// statusOf returns the error response for any error. For an error of an unknown type, statusOf returns a 500 with the request's ID, and
// writes the text of the error only to the log.
func statusOf(ctx context.Context, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, identity.ErrUnauthenticated):
		return Fault(http.StatusUnauthorized, "", "The request you have made requires authentication.")
	case errors.Is(err, identity.ErrUnavailable):
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "Identity service is unavailable", "request_id", RequestID(ctx), "error", err)
		}
		return Fault(http.StatusServiceUnavailable, "", "The identity service cannot be reached. Try again later.")
	case errors.Is(err, db.ErrNotFound):
		return Fault(http.StatusNotFound, "", "%s", err)
	case errors.Is(err, db.ErrConflict):
		return Fault(http.StatusConflict, "", "%s", err)
	default:
		if ctx.Err() == nil {
			slog.ErrorContext(ctx, "Request failed", "request_id", RequestID(ctx), "error", err)
		}
		return Fault(http.StatusInternalServerError, "", "The server failed to perform the requested operation (%s).", RequestID(ctx))
	}
}
