package db_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"berth/internal/devstack"
	"berth/internal/store/db"
)

// After a failover, the former primary starts again and accepts writes, because nobody has made it a standby.
func TestFailover_FormerPrimaryGetsNoConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	former, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{Dir: filepath.Join(dir, "first")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { former.Stop() })
	promoted, err := former.StartStandby(t.Context(), filepath.Join(dir, "second"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { promoted.Stop() })
	url := devstack.FailoverURL(former, promoted)
	running := openServers(t, url)
	if got := serverPort(t, running); got != portOf(t, former) {
		t.Fatalf("server before the failover: got the port %d, want %d", got, portOf(t, former))
	}

	for _, step := range []func(context.Context) error{former.Kill, promoted.Promote, former.Start} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	for name, d := range map[string]*db.DB{"running process": running, "new process": openServers(t, url)} {
		if got := serverPort(t, d); got != portOf(t, promoted) {
			t.Errorf("server of a %s after the failover: got the port %d, want %d", name, got, portOf(t, promoted))
		}
	}
}

func openServers(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.AnswerLimits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// serverPort returns the port of the server that answers a query. The connections of the pool to a killed
// server fail first.
func serverPort(t *testing.T, d *db.DB) (port int) {
	t.Helper()
	for t.Context().Err() == nil {
		if d.QueryRow(t.Context(), `select inet_server_port()`).Scan(&port) == nil {
			break
		}
	}
	return port
}

func portOf(t *testing.T, p *devstack.Postgres) int {
	t.Helper()
	cfg, err := pgx.ParseConfig(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return int(cfg.Port)
}
