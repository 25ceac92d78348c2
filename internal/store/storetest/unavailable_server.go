package storetest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/devstack"
	"berth/internal/store/db"
)

// Server is a PostgreSQL server that only one test uses, so that the test can make the server unavailable.
// Server has one migrated database. The owner of the database is a role without special rights, because
// PostgreSQL's connection limits do not apply to superusers.
type Server struct {
	t        testing.TB
	URL      string // URL of the database for its owner
	dir      string
	postgres *devstack.Postgres
}

// Outage makes a Server unavailable. The test calls Begin and later End. Begin ends every session of the
// database's owner, except in the outage in which the server hangs.
type Outage struct {
	Name       string
	Reason     db.Reason
	Reads      bool // the server still executes reads
	Begin, End func()
}

const owner = "berth_owner" // also its password

// NewServer starts a Server, which runs until the test ends.
func NewServer(t testing.TB) *Server {
	t.Helper()
	dir, err := devstack.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{t: t, dir: filepath.Join(dir, "postgres")}
	s.start(0)
	t.Cleanup(func() {
		// a process that has received SIGSTOP would not handle the signal of Stop
		s.signalAll(syscall.SIGCONT)
		s.postgres.Stop()
	})
	Exec(t, s.postgres.URL, `create role `+owner+` login password '`+owner+`'`)
	Exec(t, s.postgres.URL, `alter database berth owner to `+owner)
	u := s.parse()
	u.User = url.UserPassword(owner, owner)
	s.URL = u.String()
	if _, err := db.Migrate(t.Context(), s.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the server on the given port; 0 means a free port.
func (s *Server) start(port int) {
	s.t.Helper()
	p, err := devstack.StartPostgres(context.WithoutCancel(s.t.Context()),
		devstack.PostgresOptions{Dir: s.dir, Port: port, Unsafe: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.postgres = p
}

func (s *Server) parse() *url.URL {
	s.t.Helper()
	u, err := url.Parse(s.postgres.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// Outages returns one Outage for each reason why a server is unavailable.
func (s *Server) Outages() []Outage {
	return []Outage{
		{
			Name:   "the server hangs",
			Reason: db.NoAnswer,
			Begin:  func() { s.signalAll(syscall.SIGSTOP) },
			End:    func() { s.signalAll(syscall.SIGCONT) },
		},
		s.setting(
			"the database is read-only (25006)",
			db.ReadOnly,
			`alter database berth set default_transaction_read_only = on`,
			`alter database berth reset default_transaction_read_only`,
		),
		s.setting(
			"no connection is left (53300)",
			db.NoConnection,
			`alter role `+owner+` connection limit 0`,
			`alter role `+owner+` connection limit -1`,
		),
		s.setting(
			"the database accepts no connections (55000)",
			db.Unreachable,
			`alter database berth allow_connections off`,
			`alter database berth allow_connections on`,
		),
		{
			Name:   "the server shuts down (57P03)",
			Reason: db.ShuttingDown,
			Begin: func() {
				// the server waits until this session ends, and accepts no other session
				admin := Connect(s.t, s.administration())
				s.signalMain(syscall.SIGTERM)
				s.awaitRefusal()
				s.endSessions(admin)
			},
			End: s.restart,
		},
		{
			Name:   "the server is down",
			Reason: db.Unreachable,
			Begin:  func() { s.postgres.Stop() },
			End:    s.restart,
		},
	}
}

// setting returns an Outage that begins and ends with an SQL statement.
func (s *Server) setting(name string, reason db.Reason, begin, end string) Outage {
	change := func(sql string) func() {
		return func() {
			s.t.Helper()
			Exec(s.t, s.administration(), sql)
			s.EndSessions() // a running session would keep its old settings
		}
	}
	return Outage{
		Name:   name,
		Reason: reason,
		Reads:  reason == db.ReadOnly,
		Begin:  change(begin),
		End:    change(end),
	}
}

// endSessions ends all sessions of the database's owner, including those that the server began to open before
// the call. The server does not list a session in pg_stat_activity until it is open. endSessions therefore
// waits until each process of the server has ended or is listed.
func (s *Server) endSessions(admin *pgx.Conn) {
	s.t.Helper()
	for remaining := s.processes(); len(remaining) > 0; {
		if _, err := admin.Exec(s.t.Context(), `select pg_terminate_backend(pid, 600000) from pg_stat_activity where usename = $1`, owner); err != nil {
			s.t.Fatal(err)
		}
		running := s.processes()
		rows, err := admin.Query(
			s.t.Context(),
			`select pid from pg_stat_activity, pg_sleep(0.005) where usename is distinct from $1`,
			owner,
		)
		if err != nil {
			s.t.Fatal(err)
		}
		others, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			s.t.Fatal(err)
		}
		remaining = slices.DeleteFunc(remaining, func(pid int) bool {
			return !slices.Contains(running, pid) || slices.Contains(others, pid)
		})
	}
}

// EndSessions ends all sessions of the database's owner with the error 57P01.
func (s *Server) EndSessions() {
	s.t.Helper()
	s.endSessions(Connect(s.t, s.administration()))
}

// SuperuserURL returns the URL of the same database for the superuser, whose sessions EndSessions does not
// end.
func (s *Server) SuperuserURL() string { return s.postgres.URL }

// administration returns the URL of the server's database `postgres`, which the superuser can still use while
// an Outage affects only the test's database.
func (s *Server) administration() string {
	s.t.Helper()
	u := s.parse()
	u.Path = "/postgres"
	return u.String()
}

// awaitRefusal waits until the server accepts no new sessions.
func (s *Server) awaitRefusal() {
	s.t.Helper()
	for {
		c, err := pgx.Connect(s.t.Context(), s.administration())
		if err != nil {
			return
		}
		_ = c.Close(context.Background())
	}
}

// restart stops the server and starts it again on the same port.
func (s *Server) restart() {
	s.t.Helper()
	s.postgres.Stop()
	port, err := strconv.Atoi(s.parse().Port())
	if err != nil {
		s.t.Fatal(err)
	}
	s.start(port)
}

// main returns the process ID of the server's main process, or 0 if the server does not run.
func (s *Server) main() int {
	lock, err := os.ReadFile(filepath.Join(s.dir, "cluster", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(lock), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

func (s *Server) signalMain(signal syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(s.main(), signal); err != nil {
		s.t.Fatal(err)
	}
}

// signalAll sends a signal to every process of the server. The main process gets the signal first and, if the
// signal is SIGSTOP, stops before the other processes get it, so that it starts no more processes.
func (s *Server) signalAll(signal syscall.Signal) {
	s.t.Helper()
	pid := s.main()
	if pid == 0 || syscall.Kill(pid, signal) != nil {
		return
	}
	for signal == syscall.SIGSTOP && !s.isStopped(pid) {
		time.Sleep(time.Millisecond)
	}
	for _, child := range s.processes() {
		_ = syscall.Kill(child, signal) // the process may have ended
	}
}

// isStopped reports whether a process has stopped because of a signal.
func (s *Server) isStopped(pid int) bool {
	s.t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Contains(string(stat), ") T ")
}

// processes returns the process IDs of the processes that the main process of the server has started.
func (s *Server) processes() (pids []int) {
	s.t.Helper()
	id := strconv.Itoa(s.main())
	children, err := os.ReadFile(filepath.Join("/proc", id, "task", id, "children"))
	if err != nil {
		s.t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			s.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
