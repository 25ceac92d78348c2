package db_test

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/devstack"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
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
	several := devstack.FailoverURL(former, promoted)
	running := openServers(t, several)
	if got := serverPort(t, running); got != portOf(t, former) {
		t.Fatalf("server before the failover: got the port %d, want %d", got, portOf(t, former))
	}

	for _, step := range []func(context.Context) error{former.Kill, promoted.Promote, former.Start} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	for name, d := range map[string]*db.DB{"running process": running, "new process": openServers(t, several)} {
		if got := serverPort(t, d); got != portOf(t, promoted) {
			t.Errorf("server of a %s after the failover: got the port %d, want %d", name, got, portOf(t, promoted))
		}
	}
	// Without a standby, `prefer-standby` uses the last primary of the URL.
	standby := strings.Replace(devstack.FailoverURL(promoted, former), "read-write", "prefer-standby", 1)
	if got := serverPort(t, openServers(t, standby)); got != portOf(t, promoted) {
		t.Errorf("server with prefer-standby after the failover: got the port %d, want %d", got, portOf(t, promoted))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // the former primary waits for its standby
	defer cancel()
	if _, err := db.Migrate(ctx, several); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[*devstack.Postgres]int64{former: 0, promoted: db.Window().Newest} {
		if got, err := db.ReadSchema(t.Context(), server.URL); err != nil || got.Version != want {
			t.Errorf("schema of the server with the port %d after a migration: got %d, error %v; want %d",
				portOf(t, server), got.Version, err, want)
		}
	}
}

// The machine of the first server accepts connections and answers nothing, so the fence learns no timeline
// from it. Without probes, the URL has the shortest timeout to connect; with probes, a probe ends before the
// timeout to connect to the first server.
func TestFailover_ServerThatDoesNotAnswerDelaysButPreventsNoConnection(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	server, err := url.Parse(storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	port := server.Port()
	server.Host = silent.Addr().String() + "," + server.Host
	for name, c := range map[string]struct {
		timeout string
		limits  db.AnswerLimits
	}{
		"without probes": {"1", db.AnswerLimits{}},
		"with probes":    {"5", db.AnswerLimits{ProbeAfter: 10 * time.Millisecond, ProbeTimeout: 4 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			several := *server
			several.RawQuery = "target_session_attrs=read-write&connect_timeout=" + c.timeout
			d, err := db.Open(t.Context(), several.String(), db.Options{Answers: c.limits})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(d.Close)
			if got := serverPort(t, d); strconv.Itoa(got) != port {
				t.Errorf("server: got the port %d, want %s", got, port)
			}
		})
	}
}

func openServers(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{})
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := d.QueryRow(ctx, `select inet_server_port()`).Scan(&port)
		if err == nil {
			return port
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func portOf(t *testing.T, p *devstack.Postgres) int {
	t.Helper()
	cfg, err := pgx.ParseConfig(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return int(cfg.Port)
}
