package harness

import (
	"testing"
	"time"
)

// LogTime logs how long the repair that the test awaited has taken. The test does not limit the time, because
// the machine may be slow.
func LogTime(t *testing.T, begin time.Time, what string) {
	t.Helper()
	t.Logf("%s took %s", what, time.Since(begin).Round(100*time.Millisecond))
}

// WaitingFor returns a text with the description if the condition is false, and an empty string if the
// condition is true. A check for Await returns the text of WaitingFor as the description of what is still
// missing.
func WaitingFor(description string, condition bool) string {
	if condition {
		return ""
	}
	return "not yet: " + description
}
