package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"go.temporal.io/api/serviceerror"
)

// Exit codes. Scripts may rely on them.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitUnavailable = 5
	exitWait        = 6
	exitDenied      = 7
)

const exitHelp = `Exit codes:
  0  done
  1  any other failure
  2  the command line is wrong, or --yes is missing
  3  the object does not exist
  4  a conflict: somebody was faster, the object is in use, or a name fits several objects
  5  the API, Temporal or the database cannot be reached
  6  a wait ran out of time or ended in a state that cannot lead there
  7  the credentials are missing or not sufficient`

// trouble is an error that knows the exit code and what the user can do next.
type trouble struct {
	code int
	what string
	next string // may be empty
	err  error  // may be nil
}

func (t *trouble) Error() string {
	if t.err == nil {
		return t.what
	}
	return t.what + ": " + reason(t.err)
}

func (t *trouble) Unwrap() error { return t.err }

func fail(code int, next, format string, args ...any) *trouble {
	return &trouble{code: code, what: fmt.Sprintf(format, args...), next: next}
}

// usage is a mistake on the command line.
func usage(format string, args ...any) *trouble { return fail(exitUsage, "", format, args...) }

// away says that a neighbour cannot be reached.
func away(what, next string, err error) *trouble {
	return &trouble{code: exitUnavailable, what: "cannot reach " + what, next: next, err: err}
}

// reason drops what the words before it already said: the operation and the address.
func reason(err error) string {
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
		return lastCause(err.Error())
	}
}

// lastCause shortens what gRPC says of a connection that it could not open.
func lastCause(s string) string {
	if _, cause, found := strings.Cut(s, ": connect: "); found {
		return strings.TrimRight(cause, `"`)
	}
	return s
}

// exitCode is what the process ends with for an error of run.
func exitCode(err error) int {
	var t *trouble
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &t):
		return t.code
	default:
		return exitOther
	}
}

// report prints an error for people: what, why, what to do next.
func report(w io.Writer, err error) {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w, "starter: interrupted")
		return
	}
	fmt.Fprintf(w, "starter: %s\n", clean(err.Error()))
	var t *trouble
	if errors.As(err, &t) && t.next != "" {
		fmt.Fprintf(w, "  %s\n", t.next)
	}
}

// temporalTrouble translates an error of the Temporal client about one workflow.
func temporalTrouble(s *settings, workflow string, err error) error {
	var missing *serviceerror.NotFound
	var namespace *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case err == nil:
		return nil
	case errors.As(err, &namespace):
		return fail(exitNotFound, "Set --namespace or TEMPORAL_NAMESPACE.", "Temporal at %s has no namespace %q", s.address, s.namespace)
	case errors.As(err, &missing) && closed(missing):
		return fail(exitNotFound, "Nobody waits for this any more. `starter why "+workflow+"` tells what the API knows.", "the workflow %s is closed", workflow)
	case errors.As(err, &missing):
		return &trouble{code: exitNotFound, what: "no workflow runs as " + workflow, err: errUnborn,
			next: "`starter why " + workflow + "` tells what the API knows, `starter doctor` whether workflows are started."}
	case errors.As(err, &denied):
		return fail(exitDenied, "", "Temporal refuses: %s", denied.Message)
	case temporalAway(err):
		return away("Temporal at "+s.address, "Is it running? Start everything with `make run`, or set --address.", err)
	default:
		return fmt.Errorf("%s: %w", workflow, err)
	}
}

// errUnborn means that Temporal knows no such workflow, not even a closed one.
var errUnborn = errors.New("it never did, or not yet")

// closed tells a workflow that has ended from one that was never there. Temporal has one error for both.
func closed(missing *serviceerror.NotFound) bool {
	return strings.Contains(missing.Message, "already completed")
}

func temporalAway(err error) bool {
	var unavailable *serviceerror.Unavailable
	var deadline *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded)
}
