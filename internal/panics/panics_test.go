package panics_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"berth/internal/panics"
)

func TestRecover_PanicBecomesTheErrorOfTheFunction(t *testing.T) {
	t.Parallel()
	call := func(f func() error) (err error) {
		defer panics.Recover(context.Background(), "the work of the test", &err)
		return f()
	}
	if err := call(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("error of a function that does not panic: got %v, want its own", err)
	}
	err := call(func() error { panic("scripted") })
	if !errors.Is(err, panics.Err) || !strings.Contains(err.Error(), "the work of the test") ||
		strings.Contains(err.Error(), "scripted") {
		t.Errorf("error of a function that panics: got %v, want Err with the name of the work, without the panic", err)
	}
}
