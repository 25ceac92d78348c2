package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions are the options of a PostgreSQL server.
type PostgresOptions struct {
	Dir    string // holds the cluster, its password and its log; created if missing, kept after Stop
	Port   int    // 0: a free one
	Unsafe bool   // for tests: no fsync, and a password hash that is cheap to check
}

// Postgres is a running PostgreSQL server.
type Postgres struct {
	// URL is the connection URL of the database "berth" for the server's superuser.
	URL     string
	options PostgresOptions
	as      account
	bin     string
	proc    *process
}

// StartPostgres starts a PostgreSQL server on the data in the folder. StartPostgres creates the database
// cluster and the database if they do not exist.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	bin, err := PostgresBinaries(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	p := &Postgres{options: o, bin: bin}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if p.as, err = accountFor(dir); err != nil {
		return nil, err
	}
	password, err := p.init(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.awaitPredecessor(ctx); err != nil {
		return nil, err
	}
	err = withPort(o.Port, func(port int) error {
		p.options.Port = port
		u := url.URL{
			Scheme: "postgres",
			User:   url.UserPassword("berth", password),
			Host:   "127.0.0.1:" + strconv.Itoa(port),
			Path:   "/berth",
		}
		p.URL = u.String()
		return p.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	if err := p.createDatabase(ctx); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Ended returns a channel that is closed after the end of the server process.
func (p *Postgres) Ended() <-chan struct{} { return p.proc.done }

// Stop shuts the server down; the server does not wait until its clients disconnect.
func (p *Postgres) Stop() { p.proc.stop(os.Interrupt, 20*time.Second) }

// Restart kills all processes of the server with SIGKILL and starts the server on the same port.
func (p *Postgres) Restart(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	return p.run(ctx)
}

// Kill kills all processes of the server with SIGKILL.
func (p *Postgres) Kill(ctx context.Context) error {
	server := p.proc.cmd.Process.Pid
	_ = syscall.Kill(server, syscall.SIGSTOP) // after SIGSTOP, the server forks no more processes
	sessions, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", server, server))
	if err != nil {
		return err
	}
	p.proc.stop(syscall.SIGKILL, time.Minute)
	for session := range strings.FieldsSeq(string(sessions)) {
		pid, err := strconv.Atoi(session)
		if err != nil {
			return err
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		// the shared memory of a running process would prevent the start of the next server
		for !ended(pid) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// ended reports whether a process does not exist any more or is a zombie. The process need not be a child of
// this process.
func ended(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(raw), ") ")
	return err != nil || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

func (p *Postgres) cluster() string { return filepath.Join(p.options.Dir, "cluster") }

// init creates the database cluster unless it exists, and returns the superuser's password.
func (p *Postgres) init(ctx context.Context) (string, error) {
	file := filepath.Join(p.options.Dir, "password")
	if _, err := os.Stat(filepath.Join(p.cluster(), "PG_VERSION")); err == nil {
		password, err := os.ReadFile(file)
		return string(password), err
	}
	password := rand.Text()
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		return "", err
	}
	if err := p.as.chown(file); err != nil {
		return "", err
	}
	login := "scram-sha-256"
	if p.options.Unsafe {
		login = "md5" // SCRAM hashes thousands of times for each connection, which is slow for short tests
	}
	cmd := p.command(ctx, "initdb", "-D", p.cluster(), "-U", "berth", "-A", login, "--pwfile", file,
		"-E", "UTF8", "--locale", "C", "--no-sync")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		_ = os.RemoveAll(p.cluster())
		return "", fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(out.String()))
	}
	return password, nil
}

// awaitPredecessor waits until an earlier server on the same database cluster has ended. The earlier server
// may still run if its parent process was killed.
func (p *Postgres) awaitPredecessor(ctx context.Context) error {
	const patience = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		pid := p.predecessor()
		if pid == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another PostgreSQL server (process %d) uses %s", pid, p.cluster())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// predecessor returns the process ID of an earlier server on the database cluster, or 0 if there is none. The
// ID comes from the PID file and may now belong to another program; a program that is not PostgreSQL does not
// count.
func (p *Postgres) predecessor() int {
	raw, err := os.ReadFile(filepath.Join(p.cluster(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
		return 0
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil &&
		strings.TrimSpace(string(name)) != "postgres" {
		return 0
	}
	return pid
}

func (p *Postgres) run(ctx context.Context) error {
	log, err := openLog(p.options.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	settings := []string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=1000",
		"shared_buffers=256MB", "max_wal_size=2GB", "log_min_messages=warning"}
	if p.options.Unsafe {
		settings = append(settings,
			"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=256MB")
	}
	args := []string{"-D", p.cluster(), "-p", strconv.Itoa(p.options.Port)}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	cmd := p.command(context.WithoutCancel(ctx), "postgres", args...)
	cmd.Stdout, cmd.Stderr = log.File, log.File
	if p.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	err = p.proc.await(ctx, "PostgreSQL (log: "+log.Name()+")", func(ctx context.Context) error {
		c, err := p.connect(ctx, "postgres")
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
	if err != nil {
		err = log.explain(err)
		p.Stop()
	}
	return err
}

func (p *Postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = p.as.attributes()
	return cmd
}

func (p *Postgres) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(p.URL)
	if err != nil {
		return nil, err
	}
	cfg.Database = database
	return pgx.ConnectConfig(ctx, cfg)
}

func (p *Postgres) createDatabase(ctx context.Context) error {
	c, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	var exists bool
	if err := c.QueryRow(ctx, `select exists (select from pg_database where datname = 'berth')`).Scan(&exists); err != nil ||
		exists {
		return err
	}
	_, err = c.Exec(ctx, `create database berth`)
	return err
}
