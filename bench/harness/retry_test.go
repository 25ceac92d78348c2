package harness

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/api/serviceerror"
)

func TestRetryUnavailable_RepeatsOnlyUnavailableErrors(t *testing.T) {
	t.Parallel()
	refused := errors.New("the server refused the call")
	answers := []error{
		context.DeadlineExceeded,
		serviceerror.NewDeadlineExceeded("late"),
		serviceerror.NewUnavailable("away"),
		refused,
		nil,
	}
	calls := 0

	err := RetryUnavailable(t.Context(), func() error {
		calls++
		return answers[calls-1]
	})

	if !errors.Is(err, refused) || calls != 4 {
		t.Errorf(
			"retryUnavailable made %d calls and returned %v, want 4 calls and the error of the fourth",
			calls,
			err,
		)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	err = RetryUnavailable(ended, func() error { return context.DeadlineExceeded })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("retry after the end of the context: got error %v, want DeadlineExceeded", err)
	}
}
