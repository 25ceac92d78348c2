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

// mainVariable is the environment variable that makes the test binary run the worker. Because the worker runs
// in the test binary, the race detector of the test binary also covers the worker.
const mainVariable = "BERTH_TEST_WORKER_MAIN"

// built returns the folder of the programs worker and starter. The first call to built builds both programs,
// unless `make` has already built them.
var built func() (string, error)

// Main runs the tests of a package with a PostgreSQL server and a Temporal server. If mainVariable is set,
// Main runs the worker instead of the tests.
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

// Program returns the path of the program worker or starter.
func Program(t *testing.T, name string) string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}
