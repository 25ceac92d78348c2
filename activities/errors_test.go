package activities

import (
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/temporal"

	"berth/internal/store/db"
)

func TestOnlyWhatTheDatabaseDecidedForGoodIsNotRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		typ  string
		last bool
	}{
		{fmt.Errorf("port: %w", db.ErrNotFound), NotFound, true},
		{fmt.Errorf("lease: %w", db.ErrConflict), Conflict, true},
		{invalid(errors.New("no UUID")), Invalid, true},
		{errors.New("connection refused"), "", false},
	} {
		got := classify(c.err)
		var app *temporal.ApplicationError
		if is := errors.As(got, &app); is != c.last || is && (app.Type() != c.typ || !app.NonRetryable()) {
			t.Errorf("%v became %v, want type %q, final %v", c.err, got, c.typ, c.last)
		}
	}
	if classify(nil) != nil {
		t.Error("success became an error")
	}
}
