package activities

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/text"
)

// Types of errors that no retry can fix. A workflow decides by the type what it does after the error.
const (
	NotFound = "NotFound" // the row is deleted
	Conflict = "Conflict" // the row has left the state that the writer acted on
	Invalid  = "Invalid"  // the input belongs to no row
)

// BackendError is the type of an error with which the inventory, Nova or Neutron refused a step of a lease
// (such as its start or end). A later attempt of a refused step may succeed, so the lease's workflow retries
// the step and decides for how long.
const BackendError = "BackendError"

// Types of errors that only package activities uses.
const (
	// retryRequested is the type of an error that an activity returns to make Temporal retry the activity
	// later.
	retryRequested = "RetryRequested"
	// objectErrorType is the type of an error that concerns the requested objects and not the whole
	// controller.
	objectErrorType = "ObjectError"
)

// classify decides whether Temporal retries an error. Temporal does not retry an error that is a final answer
// of the database, such as "not found"; Temporal retries all other errors.
func classify(err error) error {
	var fault *lease.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return backendError(err)
	case errors.Is(err, db.ErrNotFound):
		return nonRetryable(err, NotFound)
	case errors.Is(err, db.ErrConflict):
		return nonRetryable(err, Conflict)
	default:
		return err
	}
}

func invalid(err error) error { return nonRetryable(err, Invalid) }

func nonRetryable(err error, typ string) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), typ, temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Category:     temporal.ApplicationErrorCategoryBenign,
	})
}

// backendError converts an error to the type BackendError.
func backendError(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(text.Excerpt(err.Error(), maxErrorText), BackendError,
		temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
}

// maxErrorText is the maximum number of characters of the text of an error, which may quote a long response
// body.
const maxErrorText = 1000

func objectError(format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(
		text.Excerpt(fmt.Sprintf(format, args...), maxErrorText),
		objectErrorType,
		temporal.ApplicationErrorOptions{
			Category: temporal.ApplicationErrorCategoryBenign,
		},
	)
}

func isObjectError(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == objectErrorType
}

// controllerUnavailable returns an error that makes Temporal retry after the given time, at most after one
// minute.
func controllerUnavailable(after time.Duration, format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf(format, args...),
		retryRequested,
		temporal.ApplicationErrorOptions{
			NextRetryDelay: min(after, time.Minute),
			Category:       temporal.ApplicationErrorCategoryBenign,
		},
	)
}
