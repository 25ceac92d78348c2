// Package harness starts the servers that bench measures, and has what several measurements need: clients of
// the servers, samples, waits, and the CPU times of the processes. It knows no measurement.
package harness

import (
	"context"
	"flag"
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

// Stack is a running berth with PostgreSQL, Temporal and stubs of OpenDaylight and Nova. Stack also holds the
// clients of PostgreSQL, Temporal and berth that the measurements use.
type Stack struct {
	Context   context.Context // ends when the stack closes or when one of its processes ends unexpectedly
	Fail      context.CancelCauseFunc
	dir       string
	Clients   int // number of concurrent clients
	Signals   int // number of signals that the figure storm sends
	IdlePorts int // number of ports that the figure idle creates
	devServer bool
	worker    string // path of berth's worker program
	Machine   Machine
	Postgres  *devstack.Postgres
	Standby   *devstack.Postgres // synchronous standby of Postgres; nil: none
	database  string             // URL of berth's database
	separate  bool
	// PostgreSQL server of Temporal; nil: Temporal uses Postgres, or is the dev server
	temporalPostgres *devstack.Postgres
	server           *devstack.Temporal
	Stubs            stubs
	Rabbit           *devstack.RabbitMQ // nil until a figure needs it
	API              *API
	Relay            *API            // the process with the roles WorkerRoles; nil: API has all roles
	Rows             *pgxpool.Pool   // berth's database
	Temporal         client.Client   // client of the simulated agents and of the baseline workflows
	Datasets         map[string]*API // API processes whose database has a dataset, by the name of the dataset
	PortAPIs         int             // number of databases made by openPortAPI
	children         sync.WaitGroup
	releases         []func() // functions that were registered by OnClose
}

// Options are the options of a stack.
type Options struct {
	Clients   int    // number of concurrent clients
	Signals   int    // number of signals that the figure storm sends to one port
	IdlePorts int    // number of ports that the figure idle creates
	Worker    string // path of berth's worker program; empty: in the folder of this program
	Dir       string // parent folder of all temporary files
	DevServer bool   // use Temporal's dev server in memory and small data sets
	Separate  bool   // berth's API has a process of its own, and Temporal a PostgreSQL server of its own
	Standby   bool   // berth's PostgreSQL has a synchronous standby, and berth knows both servers
}

// AddFlags adds the flags for the options that every program lets its user choose.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Worker, "worker", "", "path of berth's worker `program` (default: in the folder of this program)")
	flags.StringVar(&o.Dir, "dir", DiskFolder(), "`folder` of the temporary databases; use a disk, not a memory file system")
	flags.BoolVar(&o.DevServer, "dev-server", false, fmt.Sprintf(
		"use Temporal's dev server in memory and small data sets, to test %s itself; the results say nothing about production", flags.Name()))
}

// StartStack starts PostgreSQL, Temporal, the stubs and berth, and waits until all are ready.
func StartStack(ctx context.Context, o Options, logf func(string, ...any)) (*Stack, error) {
	if o.Worker == "" {
		worker, err := WorkerProgram()
		if err != nil {
			return nil, err
		}
		o.Worker = worker
	}
	dir, err := os.MkdirTemp(o.Dir, "berth-bench-")
	if err != nil {
		return nil, err
	}
	s := &Stack{
		dir:       dir,
		Clients:   o.Clients,
		Signals:   o.Signals,
		IdlePorts: o.IdlePorts,
		devServer: o.DevServer,
		separate:  o.Separate,
		worker:    o.Worker,
		Datasets:  map[string]*API{},
	}
	s.Context, s.Fail = context.WithCancelCause(ctx)
	err = s.start(s.Context, o.Standby, logf)
	if err == nil {
		s.Machine, err = describeMachine(s.Context, s)
	}
	if err = FirstCause(s.Context, err); err != nil {
		err = fmt.Errorf("%w%s", err, s.ErrorLogTail())
		s.Close()
		return nil, err
	}
	return s, nil
}

// DefaultRoles are the roles of berth's process in most measurements.
const DefaultRoles = "api,relay,temporal"

func (s *Stack) start(ctx context.Context, standby bool, logf func(string, ...any)) error {
	if err := s.startPostgres(ctx, standby); err != nil {
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
	if err := s.startBerth(ctx); err != nil {
		return err
	}
	logf("berth is ready")
	if err := s.openClients(ctx); err != nil {
		return err
	}
	return s.awaitFirstFullSync(ctx)
}

// startPostgres starts berth's PostgreSQL, with a standby if the measurement needs one, and creates the
// schema.
func (s *Stack) startPostgres(ctx context.Context, standby bool) error {
	if err := os.Chmod(s.dir, 0o755); err != nil { // PostgreSQL may run under another account
		return err
	}
	var err error
	if s.Postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: filepath.Join(s.dir, "postgres")}); err != nil {
		return err
	}
	s.database = s.Postgres.URL
	if standby {
		if s.Standby, err = s.Postgres.StartStandby(ctx, filepath.Join(s.dir, "standby")); err != nil {
			return err
		}
		s.database = devstack.FailoverURL(s.Postgres, s.Standby)
	}
	_, err = db.Migrate(ctx, s.database)
	return err
}

// The roles of berth's processes in measurements with separate processes.
const (
	APIRoles    = "api"
	WorkerRoles = "relay,temporal"
)

// startBerth starts berth's processes.
func (s *Stack) startBerth(ctx context.Context) (err error) {
	if !s.separate {
		s.API, err = s.StartBerth(ctx, "worker", s.database, DefaultRoles)
		return err
	}
	if s.API, err = s.StartBerth(ctx, "api", s.database, APIRoles); err != nil {
		return err
	}
	s.Relay, err = s.StartBerth(ctx, "worker", s.database, WorkerRoles)
	return err
}

// openClients opens the clients of the database and of Temporal that the measurements use.
func (s *Stack) openClients(ctx context.Context) error {
	pool, err := pgxpool.ParseConfig(s.database)
	if err != nil {
		return err
	}
	pool.MaxConns = int32(s.Clients) + 2 // no client waits for a connection
	if s.Rows, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return err
	}
	s.Temporal, err = client.DialContext(ctx, client.Options{
		HostPort: s.server.Address,
		Logger: log.NewStructuredLogger(
			slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		),
		// as berth does on loopback
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
	return err
}

// awaitFirstFullSync requests the full sync that a new controller needs, and waits until this full sync is
// complete. If awaitFirstFullSync did not request the full sync, berth itself would start a full sync during
// a measurement.
func (s *Stack) awaitFirstFullSync(ctx context.Context) error {
	if err := s.API.Post(ctx, "/journal/v1/runs", map[string]any{"kind": contract.KeyFullSync, "reason": "bench"}, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, WaitTimeout, ErrTimeout)
	defer cancel()
	for open := true; open; Pause(ctx, PollInterval) {
		if err := s.Rows.QueryRow(ctx, `select exists (select from mirror_run where finished_at is null)`).Scan(&open); err != nil {
			return fmt.Errorf("wait for the first full sync: %w", FirstCause(ctx, err))
		}
	}
	return s.AwaitMirrored(ctx)
}

// temporalPostgres is the folder of the PostgreSQL server that only Temporal uses.
const temporalPostgres = "postgres-temporal"

func (s *Stack) startTemporal(ctx context.Context, progress func(string)) error {
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
	postgres := s.Postgres
	if s.separate {
		o := devstack.PostgresOptions{Dir: filepath.Join(s.dir, temporalPostgres)}
		if s.temporalPostgres, err = devstack.StartPostgres(ctx, o); err != nil {
			return err
		}
		postgres = s.temporalPostgres
	}
	s.server, err = devstack.StartTemporalOnPostgres(ctx, programs, dir, postgres)
	return err
}

// runProcess runs a program until ctx ends. The returned channel receives the error with which the program
// ended. If the program ends before ctx ends, runProcess ends the stack's context with an error.
func (s *Stack) runProcess(ctx context.Context, cmd *exec.Cmd) <-chan error {
	ended := make(chan error, 1)
	s.children.Go(func() {
		err := devstack.Run(ctx, cmd)
		ended <- err
		if ctx.Err() == nil {
			s.Fail(fmt.Errorf("%s ended unexpectedly: %w", filepath.Base(cmd.Path), err))
		}
	})
	return ended
}

// OnClose registers a function that stack.close calls before stack.close ends the processes.
func (s *Stack) OnClose(release func()) { s.releases = append(s.releases, release) }

// Close calls the functions registered by OnClose, ends all processes and removes the stack's folder.
func (s *Stack) Close() {
	for _, release := range slices.Backward(s.releases) {
		release()
	}
	s.Fail(nil)
	if s.Temporal != nil {
		s.Temporal.Close()
	}
	if s.Rows != nil {
		s.Rows.Close()
	}
	s.children.Wait()
	if s.Rabbit != nil {
		s.Rabbit.Kill()
	}
	if s.server != nil {
		s.server.Stop()
	}
	for _, p := range []*devstack.Postgres{s.temporalPostgres, s.Standby, s.Postgres} {
		if p != nil {
			p.Stop()
		}
	}
	_ = os.RemoveAll(s.dir)
}

// ErrorLogTail returns the last error lines from the logs of berth's processes.
func (s *Stack) ErrorLogTail() string { return LogTail(s.dir, "ERROR") }

// logTailLines is the number of lines of each log that LogTail returns.
const logTailLines = 5

// LogTail returns the last lines of each log in a folder that contain the text, each on a new line with the
// name of its log before it.
func LogTail(dir, text string) string {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	var tail strings.Builder
	for _, name := range logs {
		raw, _ := os.ReadFile(name)
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(raw)), "\n"),
			func(l string) bool { return !strings.Contains(l, text) })
		for _, l := range lines[max(0, len(lines)-logTailLines):] {
			fmt.Fprintf(&tail, "\n%s: %s", filepath.Base(name), l)
		}
	}
	return tail.String()
}

// RunEachClient runs an operation once for each client, concurrently, and returns the sum of the counts.
func (s *Stack) RunEachClient(ctx context.Context, op Operation) (int, error) {
	var group errgroup.Group
	var total atomic.Int64
	for client := range s.Clients {
		group.Go(func() error {
			n, err := op(ctx, client)
			total.Add(int64(n))
			return err
		})
	}
	err := group.Wait()
	return int(total.Load()), err
}

// FirstCause returns the cause of the end of ctx if err is not nil and ctx has ended, otherwise err. After
// ctx has ended, err is usually only a consequence of the end of ctx.
func FirstCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// EnsureRabbitMQ starts RabbitMQ if RabbitMQ is not running yet.
func (s *Stack) EnsureRabbitMQ(ctx context.Context) (err error) {
	if s.Rabbit == nil {
		s.Rabbit, err = devstack.StartRabbitMQ(ctx, filepath.Join(s.dir, "rabbitmq"), 1)
	}
	return err
}
