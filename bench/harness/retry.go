package harness

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
)

// RetryUnavailable repeats a call to Temporal while the Temporal server is overloaded or unavailable, for at
// most WaitTimeout, so that a short overload of the Temporal server (for example because of a slow disk) does
// not make a measurement fail. Because RetryUnavailable repeats the call, the Temporal server may execute the
// call more than once.
func RetryUnavailable(ctx context.Context, call func() error) error {
	err := call()
	for begin := time.Now(); isUnavailable(err) && ctx.Err() == nil; err = call() {
		if time.Since(begin) > WaitTimeout {
			return errors.Join(ErrTimeout, err)
		}
		Pause(ctx, PollInterval)
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
