package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"berth/internal/safeurl"
)

// Exit codes of starter. Scripts may rely on the exit codes of starter.
const (
	ExitOK          = 0
	ExitOther       = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitConflict    = 4
	ExitUnavailable = 5
	ExitWait        = 6
	ExitDenied      = 7
	ExitBroken      = 8
)

const exitCodesHelp = `Exit codes:
  0  success
  1  any other error
  2  the command line or a setting is wrong, or --yes is missing
  3  the object does not exist
  4  conflict: the object has changed since it was read, the object is in use, or several objects have this name
  5  the API, Temporal or the database cannot be reached
  6  the wait timed out, or the wanted status can no longer be reached
  7  credentials are missing or not sufficient
  8  the hash chain of the audit log is broken
  130  interrupted by Ctrl-C (SIGINT), or 143 by SIGTERM`

// Error is an error with an exit code and advice to the user.
type Error struct {
	Code int
	What string
	Next string // advice: what to do next; may be empty
	Err  error  // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + Cause(e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error from the exit code, the advice and a format for the message.
func Errorf(code int, next, format string, args ...any) *Error {
	return &Error{Code: code, What: fmt.Sprintf(format, args...), Next: next}
}

// UsageError makes the error for an invalid command line.
func UsageError(format string, args ...any) *Error { return Errorf(ExitUsage, "", format, args...) }

// Unavailable makes the error for a service that cannot be reached.
func Unavailable(what, next string, err error) *Error {
	return &Error{
		Code: ExitUnavailable,
		What: "cannot reach " + what,
		Next: next,
		Err:  err,
	}
}

// Cause returns the text of an error of a network client without the operation and the address, because the
// message in which starter prints this text already names the operation and the address.
func Cause(err error) string {
	var op *net.OpError
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &op) && op.Err != nil:
		return strings.TrimPrefix(op.Err.Error(), "connect: ")
	case errors.As(err, &request):
		return request.Err.Error()
	default:
		return grpcCause(err.Error())
	}
}

// grpcCause shortens gRPC's text for a failed connection.
func grpcCause(s string) string {
	if _, cause, found := strings.Cut(s, ": connect: "); found {
		return strings.TrimRight(cause, `"`)
	}
	return s
}

// ExitCode returns the exit code of the process for the result of a command.
func ExitCode(err error) int {
	var e *Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &e):
		return e.Code
	default:
		return ExitOther
	}
}

// Interruption is the cause of the end of a context that a signal has ended.
type Interruption struct{ syscall.Signal }

func (i Interruption) Error() string { return "interrupted" }

// Interrupted returns the error of a command that returned err. If a signal has ended the command, the exit
// code is 128 plus the number of the signal, as in a shell; the advice says what became of the thing that the
// command waited for.
func Interrupted(ctx context.Context, err error) error {
	var i Interruption
	if err == nil || !errors.As(context.Cause(ctx), &i) {
		return err
	}
	interrupted := &Error{Code: 128 + int(i.Signal), What: i.Error()}
	var wait *Error
	if errors.As(err, &wait) && wait.Code == ExitWait {
		interrupted.Next = wait.Next
	}
	return interrupted
}

// ReportError prints an error, and the advice for the user if the error has one.
func ReportError(w io.Writer, err error) {
	what, next := Describe(err)
	w = TextWriter(w)
	fmt.Fprintf(w, "starter: %s\n", what)
	if next != "" {
		fmt.Fprintf(w, "  %s\n", next)
	}
}

// Describe returns the text of an error, and the advice for the user, which is empty if the error has none
// and may have several lines. Both are without control characters. Errors of other packages may contain the
// URL of a setting, so Describe hides the user and the password of each URL.
func Describe(err error) (what, next string) {
	var e *Error
	if errors.As(err, &e) {
		next = sanitizeLines(e.Next)
	}
	return Sanitize(safeurl.Redact(err.Error())), next
}
