package main

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
)

// retryUnavailable repeats a call to Temporal while the Temporal server is overloaded or unavailable, for at
// most waitTimeout, so that a short overload of the Temporal server (for example because of a slow disk) does
// not make a measurement fail. Because retryUnavailable repeats the call, the Temporal server may execute the
// call more than once.
func retryUnavailable(ctx context.Context, call func() error) error {
	err := call()
	for begin := time.Now(); isUnavailable(err) && ctx.Err() == nil; err = call() {
		if time.Since(begin) > waitTimeout {
			return errors.Join(errTimeout, err)
		}
		pause(ctx, pollInterval)
	}
	return err
}

// isUnavailable tells whether an error means only that the server is overloaded or unavailable.
func isUnavailable(err error) bool {
	var deadline *serviceerror.DeadlineExceeded
	var unavailable *serviceerror.Unavailable
	var exhausted *serviceerror.ResourceExhausted
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &deadline) ||
		errors.As(err, &unavailable) ||
		errors.As(err, &exhausted)
}
