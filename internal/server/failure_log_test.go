package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestFailureLog_NamesEachCauseOnce is not parallel, because it replaces the default logger.
func TestFailureLog_NamesEachCauseOnce(t *testing.T) {
	var out bytes.Buffer
	was := slog.Default()
	t.Cleanup(func() { slog.SetDefault(was) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	l := failureLog{message: "starting failed"}
	for _, cause := range []string{"timeout", "timeout", "the key is missing", "the key is missing", "timeout"} {
		l.add(t.Context(), errors.New(cause))
	}

	var got []string
	for line := range strings.Lines(out.String()) {
		_, cause, _ := strings.Cut(strings.TrimSpace(line), "error=")
		got = append(got, strings.Trim(cause, `"`))
	}
	if want := "timeout,the key is missing,timeout"; strings.Join(got, ",") != want {
		t.Errorf("causes in the log: got %q, want %s", got, want)
	}
}
