package storetest

import (
	"os"
	"path/filepath"
	"testing"

	"berth/internal/devstack"
)

// StartPgBouncer starts a PgBouncer in transaction mode for the server of the database with the given URL.
// The PgBouncer runs connectQuery in each of its sessions, and stops when the test ends.
func StartPgBouncer(t testing.TB, database, connectQuery string) *devstack.PgBouncer {
	t.Helper()
	dir, err := devstack.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p, err := devstack.StartPgBouncer(t.Context(), devstack.PgBouncerOptions{
		Dir:          filepath.Join(dir, "pgbouncer"),
		Postgres:     database,
		ConnectQuery: connectQuery,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}
