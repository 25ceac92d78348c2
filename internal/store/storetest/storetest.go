// Package storetest gives every test its own database on a real PostgreSQL server. The database of a test is
// a clone of a template database, which each test process migrates once. A package that uses storetest needs
// this function:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/leasestore"
)

// ServerVariable names the environment variable with the URL of a PostgreSQL server that all packages of a
// test run use. If BERTH_TEST_DATABASE_URL is not set, Main starts a PostgreSQL server for each package.
const ServerVariable = "BERTH_TEST_DATABASE_URL"

var postgres struct {
	url      string // URL with the credentials of a superuser
	once     sync.Once
	admins   *pgxpool.Pool // connections of the superuser that the tests share
	template string
	err      error
}

// Main runs the tests of a package. The tests use the PostgreSQL server that BERTH_TEST_DATABASE_URL names,
// or a server that Main starts and stops.
func Main(m *testing.M) int {
	if postgres.url = os.Getenv(ServerVariable); postgres.url != "" {
		return m.Run()
	}
	dir, err := devstack.Scratch()
	if err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := devstack.StartPostgres(context.Background(),
		devstack.PostgresOptions{Dir: filepath.Join(dir, "postgres"), Unsafe: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		return 1
	}
	defer p.Stop()
	postgres.url = p.URL
	return m.Run()
}

// New opens a store on a fresh database, which is dropped when the test ends.
func New(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, URL(t))
}

// Config returns the default settings of a store, but with claims that do not end before the end of the test.
func Config() store.Config {
	return store.Config{
		Journal: journalstore.Config{ClaimDuration: time.Hour},
		Lease: leasestore.Config{
			Limits:    lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
			BatchTime: time.Hour,
		},
	}
}

// Open opens a store with the settings of Config on the database with the given URL.
func Open(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, Config())
	if err != nil {
		t.Fatalf("open the test's database: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// IgnoreCreation makes cmp.Diff ignore when notes were created.
var IgnoreCreation = cmpopts.IgnoreFields(contract.Note{}, "CreatedAt")

// ClaimNotes claims up to ten due notes of a database that is bound to no Temporal namespace.
func ClaimNotes(t testing.TB, s *store.Store) []contract.Note {
	t.Helper()
	notes, err := s.Outbox.Claim(t.Context(), "", 10, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return notes
}

// URL creates a migrated database for a test, returns the URL of the database, and drops the database when
// the test ends.
func URL(t testing.TB) string {
	t.Helper()
	if postgres.url == "" {
		t.Fatal("the package of this test must have a TestMain that calls storetest.Main")
	}
	postgres.once.Do(func() { postgres.template, postgres.err = createTemplate(context.Background()) })
	if postgres.err != nil {
		t.Fatalf("create the template database: %v", postgres.err)
	}
	name := "t_" + strings.ToLower(rand.Text())
	if err := execAsSuperuser(t.Context(), `create database `+name+` template `+postgres.template); err != nil {
		t.Fatalf("clone the template database: %v", err)
	}
	t.Cleanup(func() {
		if err := execAsSuperuser(context.Background(), `drop database `+name+` with (force)`); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return databaseURL(name)
}

// Exec runs SQL on the database with the given URL. Tests use Exec to create faults and states that no store
// method creates.
func Exec(t testing.TB, url, sql string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// ExecScript runs several SQL statements, separated by semicolons, on the database with the given URL, in one
// transaction.
func ExecScript(t testing.TB, url, script string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(t.Context(), script, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// Connect opens a connection to the database with the given URL. When the test ends, the connection of
// Connect is closed.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// createTemplate creates the migrated template database that the test process clones for each of its tests.
func createTemplate(ctx context.Context) (name string, err error) {
	if postgres.admins, err = pgxpool.New(ctx, databaseURL("postgres")); err != nil {
		return "", err
	}
	name = "template_" + strings.ToLower(rand.Text())
	if err := execAsSuperuser(ctx, `create database `+name); err != nil {
		return "", err
	}
	if _, err := db.Migrate(ctx, databaseURL(name)); err != nil {
		return name, err
	}
	return name, execOn(ctx, name, generationGuard)
}

// databaseURL returns the URL of a database of the server. The URL sets the time limits of connections,
// statements and locks to values that a test does not reach, because the machine that runs the tests may be
// slow.
func databaseURL(database string) string {
	u, err := url.Parse(postgres.url)
	if err != nil {
		panic("storetest: " + err.Error())
	}
	u.Path = "/" + database
	limits := u.Query()
	limits.Set("connect_timeout", "600") // in seconds, the others in milliseconds
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		limits.Set(name, "3600000")
	}
	u.RawQuery = limits.Encode()
	return u.String()
}

// execAsSuperuser runs one SQL statement as superuser, outside of a transaction. execAsSuperuser retries
// while another connection to the template database is closing, because PostgreSQL clones a database only if
// no other session is connected to it.
func execAsSuperuser(ctx context.Context, sql string) error {
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := postgres.admins.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		if err == nil || time.Now().After(deadline) ||
			!strings.Contains(err.Error(), "being accessed by other users") {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// execOn runs SQL on a database of the server.
func execOn(ctx context.Context, database, sql string) error {
	c, err := pgx.Connect(ctx, databaseURL(database))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	_, err = c.Exec(ctx, sql)
	return err
}
