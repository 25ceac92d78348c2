package osapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"

	"berth/internal/identity"
	"berth/internal/store/db"
	"berth/internal/text"
)

// Error holds the values of an error response. Each API encodes an Error in its own JSON format.
type Error struct {
	Status int // HTTP status
	// the API's own name for the error, such as Neutron's type or Placement's code; may be empty
	Type    string
	Message string // for the client, without internal details
	Allow   string // the Allow header of a 405
	// RetryAfter is the value of the header Retry-After, in seconds; 0: no header.
	RetryAfter int
}

func (e *Error) Error() string { return e.Message }

// Fault returns an Error with a formatted message.
func Fault(status int, typ, format string, args ...any) *Error {
	return &Error{Status: status, Type: typ, Message: fmt.Sprintf(format, args...)}
}

// RetryIn sets the seconds after which the client may repeat the request, and returns the error.
func (e *Error) RetryIn(seconds int) *Error {
	e.RetryAfter = seconds
	return e
}

// maxMessage is the maximum length of an error message, in characters. It is necessary because some error
// messages repeat client input of any length.
const maxMessage = 2048

// shorten removes the middle of a message that is too long. shorten keeps the beginning and the end of the
// message, because both describe the error.
func shorten(e *Error) *Error {
	short := *e
	short.Message = text.WithoutMiddle(e.Message, maxMessage)
	return &short
}

// statusClientClosedRequest is the status of a request whose client has disconnected. No
// client sees this status; the metrics count it. nginx uses the same number for such requests.
const statusClientClosedRequest = 499

// retryAfter is the number of seconds after which a client should repeat a request that failed because a
// service did not work.
const retryAfter = 5

// statusOf returns the error response for any error. For an error of an unknown type, statusOf returns a 500
// with the request's ID, and writes the text of the error only to the log.
func statusOf(r *http.Request, repeatable bool, err error) *Error {
	ctx := r.Context()
	var e *Error
	var database *db.UnavailableError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(ctx.Err(), context.Canceled):
		return Fault(statusClientClosedRequest, "", "The client has closed the connection.")
	case errors.Is(err, identity.ErrUnauthenticated):
		return Fault(http.StatusUnauthorized, "", "The request you have made requires authentication.")
	case errors.Is(err, identity.ErrTooManyAttempts):
		e := Fault(http.StatusTooManyRequests, "",
			"Too many tokens from your address are invalid or wait for their validation, or your address has sent too many logins. Try again later.")
		e.RetryAfter = int(math.Ceil(identity.RetryAfter(err).Seconds()))
		return e
	case errors.Is(err, identity.ErrUnavailable):
		slog.WarnContext(ctx, "Identity service is unavailable", "error", err)
		e := Fault(http.StatusServiceUnavailable, "",
			"The identity service cannot be reached. Try again later.")
		if e.RetryAfter = retryAfter; identity.RetryAfter(err) > 0 {
			e.RetryAfter = int(math.Ceil(identity.RetryAfter(err).Seconds()))
		}
		return e
	case errors.As(err, &database):
		slog.WarnContext(ctx, "Database is unavailable", "reason", string(database.Reason), "error", err)
		return unavailable(repeatable || !database.Unknown, fmt.Sprintf("The database %s.", database.Reason))
	case errors.Is(err, context.DeadlineExceeded):
		slog.WarnContext(ctx, "Request exceeded its deadline", "error", err)
		return unavailable(repeatable, "The request was not finished in time.")
	case errors.Is(err, db.ErrNotFound):
		return Fault(http.StatusNotFound, "", "%s", err)
	case errors.Is(err, db.ErrConflict):
		return Fault(http.StatusConflict, "", "%s", err)
	default:
		slog.ErrorContext(ctx, "Request failed", "error", err)
		return Fault(http.StatusInternalServerError, "",
			"The server failed to perform the requested operation (%s).", RequestID(ctx))
	}
}

// unavailable returns a 503. If the client may repeat the request without a risk, the 503 has the header
// Retry-After. The header is missing if the first execution may have succeeded, so that clients that retry
// automatically do not execute the request twice.
func unavailable(mayRepeat bool, reason string) *Error {
	e := Fault(http.StatusServiceUnavailable, "", "%s Try again later.", reason)
	if e.RetryAfter = retryAfter; !mayRepeat {
		e.Message, e.RetryAfter = reason+" The change may have been made. Read the object before you repeat the request.", 0
	}
	return e
}
