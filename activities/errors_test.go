package activities

import (
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/temporal"

	"berth/internal/store/db"
)

func TestClassify_OnlyFinalErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		typ   string
		final bool
	}{
		{fmt.Errorf("read the port: %w", db.ErrNotFound), NotFound, true},
		{fmt.Errorf("update the lease: %w", db.ErrConflict), Conflict, true},
		{invalid(errors.New("the key is not a UUID")), Invalid, true},
		{errors.New("connect with the database: connection refused"), "", false},
	} {
		got := classify(c.err)
		var app *temporal.ApplicationError
		if is := errors.As(got, &app); is != c.final || is && (app.Type() != c.typ || !app.NonRetryable()) {
			t.Errorf("%v was classified as %v, want type %q, final %t", c.err, got, c.typ, c.final)
		}
	}
	if classify(nil) != nil {
		t.Error("classify(nil): got an error, want nil")
	}
}
