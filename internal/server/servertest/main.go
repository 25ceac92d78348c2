package servertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/server"
	"berth/internal/store/storetest"
)

// mainVariable makes this test binary behave as the worker itself, whose races are seen if it ends in good order.
const mainVariable = "BERTH_TEST_WORKER_MAIN"

// built is where berth's programs lie, which are built for the first test that wants them if nobody has built them yet.
var built func() (string, error)

// Main runs the tests of a package with a PostgreSQL and a Temporal server, or runs the worker if mainVariable is set.
func Main(m *testing.M) int {
	if os.Getenv(mainVariable) != "" {
		server.Main()
		return 0
	}
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = sync.OnceValues(func() (string, error) { return devstack.Programs(context.Background(), dir) })
	return temporaltest.Main(m, storetest.Main)
}

// Program is the file of one of berth's programs.
func Program(t *testing.T, name string) string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}
