package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/store/db"
)

// stack is a running berth with PostgreSQL, Temporal and stubs of OpenDaylight and Nova. stack also holds the
// clients of PostgreSQL, Temporal and berth that the measurements use.
type stack struct {
	ctx       context.Context // ends when the stack closes or when one of its processes ends unexpectedly
	fail      context.CancelCauseFunc
	dir       string
	clients   int // number of concurrent clients
	signals   int // number of signals that the figure storm sends
	idlePorts int // number of ports that the figure idle creates
	devServer bool
	worker    string // path of berth's worker program
	machine   machine
	postgres  *devstack.Postgres
	server    *devstack.Temporal
	stubs     stubs
	rabbit    *devstack.RabbitMQ // nil until a figure needs it
	api       *api
	rows      *pgxpool.Pool   // berth's database
	temporal  client.Client   // client of the simulated agents and of the baseline workflows
	datasets  map[string]*api // API processes whose database has a dataset, by the name of the dataset
	portAPIs  int             // number of databases made by openPortAPI
	children  sync.WaitGroup
	releases  []func() // functions that were registered by onClose
}

// options are the options of a stack.
type options struct {
	clients   int    // number of concurrent clients
	signals   int    // number of signals that the figure storm sends to one port
	idlePorts int    // number of ports that the figure idle creates
	worker    string // path of berth's worker program
	dir       string // parent folder of all temporary files
	devServer bool   // use Temporal's dev server in memory and small data sets
}

// openStack starts PostgreSQL, Temporal, the stubs and berth, and waits until all are ready.
func openStack(ctx context.Context, o options, logf func(string, ...any)) (*stack, error) {
	dir, err := os.MkdirTemp(o.dir, "berth-bench-")
	if err != nil {
		return nil, err
	}
	s := &stack{
		dir:       dir,
		clients:   o.clients,
		signals:   o.signals,
		idlePorts: o.idlePorts,
		devServer: o.devServer,
		worker:    o.worker,
		datasets:  map[string]*api{},
	}
	s.ctx, s.fail = context.WithCancelCause(ctx)
	err = s.start(s.ctx, logf)
	if err == nil {
		s.machine, err = describeMachine(s.ctx, s)
	}
	if err = firstCause(s.ctx, err); err != nil {
		err = fmt.Errorf("%w%s", err, s.errorLogTail())
		s.close()
		return nil, err
	}
	return s, nil
}

// defaultRoles are the roles of berth's process in most measurements.
const defaultRoles = "api,relay,temporal"

func (s *stack) start(ctx context.Context, logf func(string, ...any)) error {
	if err := os.Chmod(s.dir, 0o755); err != nil { // PostgreSQL may run under another account
		return err
	}
	var err error
	if s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: filepath.Join(s.dir, "postgres")}); err != nil {
		return err
	}
	if _, err := db.Migrate(ctx, s.postgres.URL); err != nil {
		return err
	}
	logf("PostgreSQL is ready")
	if err := s.startTemporal(ctx, func(step string) { logf("%s", step) }); err != nil {
		return err
	}
	logf("Temporal is ready")
	if err := s.startStubs(ctx); err != nil {
		return err
	}
	if s.api, err = s.startBerth(ctx, "worker", s.postgres.URL, defaultRoles); err != nil {
		return err
	}
	logf("berth is ready")
	pool, err := pgxpool.ParseConfig(s.postgres.URL)
	if err != nil {
		return err
	}
	pool.MaxConns = int32(s.clients) + 2 // no client waits for a connection
	if s.rows, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return err
	}
	s.temporal, err = client.DialContext(ctx, client.Options{
		HostPort: s.server.Address,
		Logger: log.NewStructuredLogger(
			slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		),
		// as berth does on loopback
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
	if err != nil {
		return err
	}
	return s.awaitFirstFullSync(ctx)
}

// awaitFirstFullSync requests the full sync that a new controller needs, and waits until this full sync is
// complete. If awaitFirstFullSync did not request the full sync, berth itself would start a full sync during
// a measurement.
func (s *stack) awaitFirstFullSync(ctx context.Context) error {
	if err := s.api.post(ctx, "/journal/v1/runs", map[string]any{"kind": contract.KeyFullSync, "reason": "bench"}, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errTimeout)
	defer cancel()
	for open := true; open; pause(ctx, pollInterval) {
		if err := s.rows.QueryRow(ctx, `select exists (select from mirror_run where finished_at is null)`).Scan(&open); err != nil {
			return fmt.Errorf("wait for the first full sync: %w", firstCause(ctx, err))
		}
	}
	return s.awaitMirrored(ctx)
}

func (s *stack) startTemporal(ctx context.Context, progress func(string)) error {
	dir := filepath.Join(s.dir, "temporal")
	if s.devServer {
		cli, err := devstack.TemporalCLI(ctx, progress)
		if err != nil {
			return err
		}
		s.server, err = devstack.StartTemporal(ctx,
			devstack.TemporalOptions{CLI: cli, Dir: dir, Memory: true})
		return err
	}
	programs, err := devstack.TemporalServer(ctx, progress)
	if err != nil {
		return err
	}
	s.server, err = devstack.StartTemporalOnPostgres(ctx, programs, dir, s.postgres)
	return err
}

// runProcess runs a program until ctx ends. The returned channel receives the error with which the program
// ended. If the program ends before ctx ends, runProcess ends the stack's context with an error.
func (s *stack) runProcess(ctx context.Context, cmd *exec.Cmd) <-chan error {
	ended := make(chan error, 1)
	s.children.Go(func() {
		err := devstack.Run(ctx, cmd)
		ended <- err
		if ctx.Err() == nil {
			s.fail(fmt.Errorf("%s ended unexpectedly: %w", filepath.Base(cmd.Path), err))
		}
	})
	return ended
}

// onClose registers a function that stack.close calls before stack.close ends the processes.
func (s *stack) onClose(release func()) { s.releases = append(s.releases, release) }

// close calls the functions registered by onClose, ends all processes and removes the stack's folder.
func (s *stack) close() {
	for _, release := range slices.Backward(s.releases) {
		release()
	}
	s.fail(nil)
	if s.temporal != nil {
		s.temporal.Close()
	}
	if s.rows != nil {
		s.rows.Close()
	}
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

// errorLogLines is the number of log lines of each process that errorLogTail returns.
const errorLogLines = 5

// errorLogTail returns the last error lines from the logs of berth's processes.
func (s *stack) errorLogTail() string {
	logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	var tail strings.Builder
	for _, name := range logs {
		raw, _ := os.ReadFile(name)
		lines := slices.DeleteFunc(strings.Split(string(raw), "\n"),
			func(l string) bool { return !strings.Contains(l, "ERROR") })
		for _, l := range lines[max(0, len(lines)-errorLogLines):] {
			fmt.Fprintf(&tail, "\n%s: %s", filepath.Base(name), l)
		}
	}
	return tail.String()
}

// runEachClient runs an operation once for each client, concurrently, and returns the sum of the counts.
func (s *stack) runEachClient(ctx context.Context, op operation) (int, error) {
	var group errgroup.Group
	var total atomic.Int64
	for client := range s.clients {
		group.Go(func() error {
			n, err := op(ctx, client)
			total.Add(int64(n))
			return err
		})
	}
	err := group.Wait()
	return int(total.Load()), err
}

// firstCause returns the cause of the end of ctx if err is not nil and ctx has ended, otherwise err. After
// ctx has ended, err is usually only a consequence of the end of ctx.
func firstCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// ensureRabbitMQ starts RabbitMQ if RabbitMQ is not running yet.
func (s *stack) ensureRabbitMQ(ctx context.Context) (err error) {
	if s.rabbit == nil {
		s.rabbit, err = devstack.StartRabbitMQ(ctx, filepath.Join(s.dir, "rabbitmq"), 1)
	}
	return err
}
