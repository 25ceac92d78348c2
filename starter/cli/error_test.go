package cli

import (
	"errors"
	"testing"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"success":       {nil, ExitOK},
		"any error":     {errors.New("x"), ExitOther},
		"usage error":   {UsageError("x"), ExitUsage},
		"wrapped error": {errors.Join(errors.New("x"), Unavailable("the API", "", errors.New("y"))), ExitUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ExitCode(c.err); got != c.code {
				t.Errorf("exit code of the error: got %d, want %d", got, c.code)
			}
		})
	}
}
