package server

import (
	"context"
	"log/slog"
)

// failureLog logs the failures of a step that a process repeats until the step succeeds.
type failureLog struct {
	message string
	last    string // text of the last failure
}

// add logs a failure, unless it has the same text as the one before. A later failure can have another cause
// than the first, for example a missing key after a timeout.
func (l *failureLog) add(ctx context.Context, err error) {
	if text := err.Error(); text != l.last {
		l.last = text
		slog.WarnContext(ctx, l.message, "error", err)
	}
}
