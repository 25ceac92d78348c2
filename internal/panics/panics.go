// Package panics turns panics into errors, so that a programming mistake in the work for one object does not
// end the process. A panic in a goroutine ends the process unless the goroutine itself recovers.
package panics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Err means that an operation panicked. The log has the panic and its stack.
var Err = errors.New("the operation panicked")

// Recover is for defer. If the function that defers it panics, Recover logs the panic of the operation
// `what`, and sets *err to an error that wraps Err.
func Recover(ctx context.Context, what string, err *error) {
	if p := recover(); p != nil {
		slog.ErrorContext(ctx, "panic in "+what, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w: %s", Err, what)
	}
}
