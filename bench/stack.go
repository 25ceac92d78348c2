package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/store"
)

// stack is everything that is measured, with what the figures need to reach it.
type stack struct {
	dir       string
	clients   int // at the same time
	postgres  *devstack.Postgres
	server    *devstack.Temporal
	standIns  standIns
	rabbit    *devstack.RabbitMQ // nil until a figure wants it
	api       *api
	rows      *pgxpool.Pool // of berth's database
	temporal  client.Client // an agent's, and the one whose workflows do nothing
	devServer bool
	worker    string          // berth's program
	forests   map[string]*api // APIs over databases of their own, see plant
	quays     int             // databases where only ports are made
	signals   int             // to one port
	idle      int             // ports
	alive     context.Context // until the stack closes
	children  sync.WaitGroup
	end       context.CancelFunc // ends the children
	fail      context.CancelCauseFunc
}

// openStack starts everything; fail hears of a process that ends by itself.
func openStack(ctx context.Context, set settings, fail context.CancelCauseFunc, say func(string, ...any)) (*stack, error) {
	dir, err := os.MkdirTemp(set.dir, "berth-bench-")
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, clients: set.pace.InFlight, devServer: set.devServer, fail: fail,
		signals: set.signals, idle: set.idle}
	ctx, s.end = context.WithCancel(ctx)
	s.alive, s.worker, s.forests = ctx, set.worker, map[string]*api{}
	if err := s.start(ctx, set, say); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// usualRoles are berth's where nothing else is said.
const usualRoles = "api,relay,temporal"

func (s *stack) start(ctx context.Context, set settings, say func(string, ...any)) error {
	if err := os.Chmod(s.dir, 0o755); err != nil { // PostgreSQL may run as another account
		return err
	}
	var err error
	if s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: filepath.Join(s.dir, "postgres")}); err != nil {
		return err
	}
	if _, err := store.Migrate(ctx, s.postgres.URL); err != nil {
		return err
	}
	say("PostgreSQL is up")
	if err := s.startTemporal(ctx, func(step string) { say("%s", step) }); err != nil {
		return err
	}
	say("Temporal is up")
	if err := s.startStandIns(ctx); err != nil {
		return err
	}
	if s.api, err = s.startBerth(ctx, "worker", s.postgres.URL, usualRoles); err != nil {
		return err
	}
	say("berth is up")
	pool, err := pgxpool.ParseConfig(s.postgres.URL)
	if err != nil {
		return err
	}
	pool.MaxConns = int32(set.pace.InFlight) + 2 // nobody waits for a connection
	if s.rows, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return err
	}
	s.temporal, err = client.DialContext(ctx, client.Options{
		HostPort:          s.server.Address,
		Logger:            log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}, // as berth does on loopback
	})
	if err != nil {
		return err
	}
	return s.acquaint(ctx)
}

// acquaint lets berth find out at once that the controller is new, which it else does in the middle of some figure.
func (s *stack) acquaint(ctx context.Context) error {
	if err := s.api.post(ctx, "/journal/v1/runs", map[string]any{"kind": contract.KeyFullSync, "reason": "bench"}, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	for open := true; open; pause(ctx, lookEvery) {
		if err := s.rows.QueryRow(ctx, `select exists (select from mirror_run where finished_at is null)`).Scan(&open); err != nil {
			return fmt.Errorf("first full sync: %w", err)
		}
	}
	return s.settled(ctx)
}

func (s *stack) startTemporal(ctx context.Context, progress func(string)) error {
	dir := filepath.Join(s.dir, "temporal")
	if s.devServer {
		cli, err := devstack.TemporalCLI(ctx, progress)
		if err != nil {
			return err
		}
		s.server, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{CLI: cli, Dir: dir, Memory: true})
		return err
	}
	programs, err := devstack.TemporalServer(ctx, progress)
	if err != nil {
		return err
	}
	s.server, err = devstack.StartTemporalOnPostgres(ctx, programs, dir, s.postgres)
	return err
}

// run runs a program until the stack closes. How it ended comes from the channel.
func (s *stack) run(ctx context.Context, cmd *exec.Cmd) <-chan error {
	ended := make(chan error, 1)
	s.children.Go(func() {
		err := devstack.Run(ctx, cmd)
		ended <- err
		if ctx.Err() == nil {
			s.fail(fmt.Errorf("%s ended by itself: %w", filepath.Base(cmd.Path), err))
		}
	})
	return ended
}

// close ends everything and removes its folder.
func (s *stack) close() {
	if s.temporal != nil {
		s.temporal.Close()
	}
	if s.rows != nil {
		s.rows.Close()
	}
	s.end()
	s.children.Wait()
	if s.rabbit != nil {
		s.rabbit.Kill()
	}
	if s.server != nil {
		s.server.Stop()
	}
	if s.postgres != nil {
		s.postgres.Stop()
	}
	_ = os.RemoveAll(s.dir)
}
