package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
)

// TemporalError converts an error of the Temporal client about one workflow to an Error.
func TemporalError(s *Settings, workflow string, err error) error {
	var missing *serviceerror.NotFound
	var namespace *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case err == nil:
		return nil
	case errors.As(err, &namespace):
		return Errorf(ExitNotFound, "Set --namespace or TEMPORAL_NAMESPACE.",
			"Temporal at %s has no namespace %q", s.TemporalAddress, s.TemporalNamespace)
	case errors.As(err, &missing) && isClosed(missing):
		return &Error{
			Code: ExitNotFound,
			What: "the workflow " + workflow + " is closed",
			Err:  ErrClosedWorkflow,
			Next: "The workflow accepts no more signals. `starter why " + workflow + "` shows what the API knows.",
		}
	case errors.As(err, &missing):
		return &Error{
			Code: ExitNotFound,
			What: "workflow " + workflow + " is not found",
			Err:  ErrNoWorkflow,
			Next: "`starter why " + workflow + "` shows what the API knows. `starter doctor` checks whether workflows can start.",
		}
	case errors.As(err, &denied):
		return Errorf(ExitDenied, "", "Temporal denied the request: %s", denied.Message)
	case isUnavailable(err):
		return Unavailable("Temporal at "+s.TemporalAddress,
			"Is it running? Start everything with `make run`, or set --address.", err)
	default:
		return fmt.Errorf("%s: %w", workflow, err)
	}
}

// ErrNoWorkflow means that Temporal has no workflow with the requested ID, neither open nor closed.
var ErrNoWorkflow = errors.New("the workflow never started, or has not started yet")

// ErrClosedWorkflow means that the workflow with the requested ID has ended. If the object of the
// workflow still exists, berth starts the workflow again.
var ErrClosedWorkflow = errors.New("its object is deleted, or the workflow was terminated or cancelled")

// isClosed reports whether the error means that the workflow exists but is closed. Temporal returns the error
// type NotFound both for a closed workflow and for a workflow that does not exist.
func isClosed(missing *serviceerror.NotFound) bool {
	return strings.Contains(missing.Message, "already completed")
}

func isUnavailable(err error) bool {
	var unavailable *serviceerror.Unavailable
	var deadline *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}
