package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/bench/harness"
	"berth/internal/devstack"
	"berth/internal/store/db"
)

// Names of the two servers.
const (
	berthName     = "berth"
	placementName = "OpenStack Placement"
)

// stack holds the two servers and their PostgreSQL servers.
type stack struct {
	ctx      context.Context // ends when the stack closes or when a server ends unexpectedly
	fail     context.CancelCauseFunc
	dir      string
	settings settings
	postgres []*devstack.Postgres
	peers    [2]*peer // berth, then OpenStack Placement
	machine  machine
	children sync.WaitGroup
}

// openStack starts both servers and waits until they are ready.
func openStack(ctx context.Context, set settings, logf func(string, ...any)) (*stack, error) {
	dir, err := os.MkdirTemp(set.dir, "berth-peer-")
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, settings: set}
	s.ctx, s.fail = context.WithCancelCause(ctx)
	if err = os.Chmod(dir, 0o755); err == nil { // PostgreSQL may run under another account
		err = s.start(s.ctx, logf)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w%s", harness.FirstCause(s.ctx, err), harness.LogTail(s.dir, "")), s.close())
	}
	return s, nil
}

func (s *stack) start(ctx context.Context, logf func(string, ...any)) error {
	s.machine = machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	for i, start := range []func(context.Context, string) (*peer, error){s.startBerth, s.startPlacement} {
		database, err := s.startPostgres(ctx, fmt.Sprint("postgres-", i))
		if err != nil {
			return err
		}
		if s.peers[i], err = start(ctx, database); err != nil {
			return err
		}
		logf("%s is ready", s.peers[i].name)
	}
	return nil
}

// startPostgres starts a PostgreSQL server for one of the two servers and returns the URL of its database.
func (s *stack) startPostgres(ctx context.Context, name string) (string, error) {
	p, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: filepath.Join(s.dir, name)})
	if err != nil {
		return "", err
	}
	s.postgres = append(s.postgres, p)
	c, err := pgx.Connect(ctx, p.URL)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	return p.URL, c.QueryRow(ctx, `select split_part(current_setting('server_version'), ' ', 1)`).Scan(&s.machine.PostgreSQL)
}

// startBerth starts berth's worker with the role api. All settings that are not needed to start it have
// their defaults. The role api does not call Temporal.
func (s *stack) startBerth(ctx context.Context, database string) (*peer, error) {
	if _, err := db.Migrate(ctx, database); err != nil {
		return nil, err
	}
	port, err := devstack.Port(0)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(s.settings.worker, "-roles", "api")
	cmd.Env = []string{
		"BERTH_AUTH=noauth",
		"BERTH_LISTEN=" + address,
		"BERTH_DATABASE_URL=" + database,
		"TEMPORAL_CONFIG_FILE=" + os.DevNull,
	}
	p := newPeer(berthName, address, "/placement", s.settings.Clients)
	return p, s.serve(ctx, p, cmd)
}

// serve runs the server program of a peer until the stack closes, and waits until it answers. The program
// logs to a file in the stack's folder.
func (s *stack) serve(ctx context.Context, p *peer, cmd *exec.Cmd) error {
	log, err := os.Create(filepath.Join(s.dir, strings.ReplaceAll(p.name, " ", "-")+".log"))
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	s.children.Go(func() {
		defer func() { _ = log.Close() }()
		err := devstack.Run(s.ctx, cmd)
		s.fail(fmt.Errorf("%s ended unexpectedly: %w", p.name, err))
	})
	return p.awaitReady(ctx)
}

// close ends all processes and removes the stack's folder.
func (s *stack) close() error {
	for _, p := range s.peers {
		if p != nil {
			p.connections.Close()
		}
	}
	s.fail(nil)
	s.children.Wait()
	for _, p := range s.postgres {
		p.Stop()
	}
	return os.RemoveAll(s.dir)
}

// readyTimeout is how long a server may take until it answers.
const readyTimeout = 5 * time.Minute

// awaitReady waits until the server answers the request for its versions.
func (p *peer) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := p.send(0, request{method: "GET", path: "/"})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", p.name, err)
		case <-tick.C:
		}
	}
}
