package devstack_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"berth/internal/devstack"
)

// olderCLI returns the path of a temporal CLI that says that its server is older.
func olderCLI(t *testing.T) string {
	t.Helper()
	genuine, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	script := `#!/bin/sh
if [ "$1" = --version ]; then
	echo 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)'
	exit
fi
exec '` + genuine + `' "$@"
`
	path := filepath.Join(t.TempDir(), "temporal")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDevServer_NewMinorVersionStartsWithItsOwnDatabase(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	older := temporal(t, devstack.TemporalOptions{CLI: olderCLI(t), Dir: dir})
	c, err := client.DialContext(t.Context(), client.Options{HostPort: older.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"}, "Any"); err != nil {
		t.Fatal(err)
	}
	older.Stop()

	newer := temporal(t, devstack.TemporalOptions{Dir: dir})

	n, err := client.DialContext(t.Context(), client.Options{HostPort: newer.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var notFound *serviceerror.NotFound
	if _, err := n.DescribeWorkflowExecution(t.Context(), "w", ""); !errors.As(err, &notFound) {
		t.Errorf("workflow of the older server on the newer one: error %v, want NotFound", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "temporal-1.29.db")); err != nil {
		t.Errorf("database of the older server: %v, want it kept", err)
	}
}
