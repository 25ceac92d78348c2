package harness

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/db"
)

// StartOwnPostgres starts a PostgreSQL server for a single test, so that the test may kill the server.
func StartOwnPostgres(t *testing.T) *devstack.Postgres {
	t.Helper()
	postgres := startEmptyPostgres(t)
	if _, err := db.Migrate(t.Context(), postgres.URL); err != nil {
		t.Fatal(err)
	}
	return postgres
}

// startEmptyPostgres starts a PostgreSQL for this test alone, whose database has no schema.
func startEmptyPostgres(t *testing.T) *devstack.Postgres {
	t.Helper()
	postgres, err := devstack.StartPostgres(
		t.Context(),
		devstack.PostgresOptions{Dir: filepath.Join(filepath.Dir(servertest.DataFolder(t)), "postgres")},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(postgres.Stop)
	return postgres
}

// StartOwnTemporal starts a Temporal server for the test alone, and connects with it.
func StartOwnTemporal(t *testing.T) (*devstack.TestTemporal, client.Client) {
	t.Helper()
	server, err := devstack.StartTestTemporal(t.Context(),
		filepath.Join(filepath.Dir(servertest.DataFolder(t)), "temporal"), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: server.Address,
		Logger:   log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return server, c
}
