package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAwaitReady_FailsWhenTheProcessEnds(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("no such database"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ended <- errors.New("exit status 1")

	err := NewAPI("http://127.0.0.1:1").awaitReady(t.Context(), ended, log)

	if err == nil || !strings.Contains(err.Error(), "exit status 1: no such database") {
		t.Error(err)
	}
}
