package harness

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// faultKind is a kind of fault. The function begin starts one fault of this kind and returns the function
// that ends this fault.
type faultKind struct {
	name    string
	weight  int
	longest time.Duration
	begin   func(d *RandomDeployment, r *rand.Rand) (end func() error, err error)
	// optional kinds occur only if FAULTS names them or is "all", because berth does not survive them yet.
	optional bool
}

// faultKinds lists all kinds of faults.
var faultKinds = []faultKind{
	{
		name:    "process killed",
		weight:  6,
		longest: time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			pick(r, d.Processes).kill()
			return noop, nil
		},
	},
	{
		name:    "process frozen",
		weight:  4,
		longest: 12 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			p := pick(r, d.Processes)
			p.signal(syscall.SIGSTOP)
			return func() error { p.signal(syscall.SIGCONT); return nil }, nil
		},
	},
	{
		name:    "database connections cut",
		weight:  4,
		longest: time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return noop, pick(r, d.Processes).database.cut()
		},
	},
	{
		name:    "database connections stalled",
		weight:  3,
		longest: 8 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			l := pick(r, d.Processes).database
			return l.heal, l.stall()
		},
	},
	{
		name:    "PostgreSQL killed",
		weight:  2,
		longest: time.Second,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			return noop, d.Postgres.Restart(d.Context())
		},
	},
	{
		name:    "PostgreSQL read-only",
		weight:  2,
		longest: 6 * time.Second,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			return func() error { return d.setReadOnly("off") }, d.setReadOnly("on")
		},
	},
	{
		name:    "table locked",
		weight:  2,
		longest: 6 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return d.lockTable(pick(r, []string{"port", "journal_entry", "note", "lease", "consumer"}))
		},
	},
	{
		name:    "Temporal killed",
		weight:  2,
		longest: 8 * time.Second,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			d.temporal.Kill()
			return d.startTemporal, nil
		},
	},
	{
		name:    "Temporal slow",
		weight:  2,
		longest: 15 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return d.slowLink.heal, d.slowLink.Slow(200 + r.IntN(800))
		},
	},
	{
		name:    "Temporal throttled",
		weight:  1,
		longest: 15 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return d.slowLink.heal, d.slowLink.throttle(20 + r.IntN(60))
		},
	},
	{
		name:    "RabbitMQ killed",
		weight:  1,
		longest: 5 * time.Second,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			d.rabbit.Kill()
			return func() error { return d.rabbit.Start(d.Context()) }, nil
		},
	},
	{
		name:    "Nova fails",
		weight:  3,
		longest: 10 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return d.nova.set(drawServerFault(r)), nil
		},
	},
	{
		name:    "controller fails",
		weight:  3,
		longest: 10 * time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return d.odl.set(drawServerFault(r)), nil
		},
	},
	{
		name:    "answers lost",
		weight:  4,
		longest: 10 * time.Second,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			d.clientFault.share.Store(20)
			return func() error { d.clientFault.share.Store(0); return nil }, nil
		},
	},
	{
		name:     "Temporal emptied",
		weight:   1,
		longest:  3 * time.Second,
		optional: true,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			d.temporal.Kill()
			return d.startTemporalAfterDataLoss, d.temporal.EraseData(d.Context())
		},
	},
	{
		name:     "Temporal restored from a copy",
		weight:   1,
		longest:  3 * time.Second,
		optional: true,
		begin: func(d *RandomDeployment, _ *rand.Rand) (func() error, error) {
			d.temporal.Kill()
			return d.startTemporalAfterDataLoss, d.restoreTemporalData()
		},
	},
	{
		name:     "workflow terminated",
		weight:   1,
		longest:  time.Second,
		optional: true,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			return noop, d.terminateWorkflow(r)
		},
	},
}

func noop() error { return nil }

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// drawServerFault returns a fault of Nova or the controller. A fault with an error status hits all requests.
// Otherwise the controller could refuse one journal entry five times and accept other entries meanwhile; then
// the refused entry would fail and need an operator.
func drawServerFault(r *rand.Rand) serverFault {
	return pick(r, []serverFault{
		{share: 1, status: 500},
		{share: 1, status: 503},
		{share: 0.5, hang: true},
		{share: 0.5, loseAnswer: true},
		{share: 1, delay: time.Second},
	})
}

// setReadOnly makes all transactions of berth read-only, or writable again.
func (d *RandomDeployment) setReadOnly(value string) error {
	return d.execWritable(`alter system set default_transaction_read_only = `+value,
		`select pg_reload_conf()`)
}

// execWritable runs statements in a separate session, in which the fault "PostgreSQL read-only" has no
// effect.
func (d *RandomDeployment) execWritable(statements ...string) error {
	cfg, err := pgx.ParseConfig(d.Postgres.URL)
	if err != nil {
		return err
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "off"
	c, err := pgx.ConnectConfig(d.Context(), cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := c.Exec(d.Context(), s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// lockTable locks a table against reads and writes, as a migration or a person in psql does. A restart of
// PostgreSQL also ends the lock.
func (d *RandomDeployment) lockTable(table string) (unlock func() error, err error) {
	c, err := pgx.Connect(d.Context(), d.Postgres.URL)
	if err != nil {
		return nil, err
	}
	unlock = sync.OnceValue(func() error { _ = c.Close(context.Background()); return nil })
	_, err = c.Exec(d.Context(),
		`begin; set lock_timeout = '3s'; lock table `+pgx.Identifier{table}.Sanitize())
	if err != nil {
		_ = unlock()
	}
	return unlock, err
}

// restoreTemporalData copies Temporal's data when it is called for the first time. Each later call replaces
// Temporal's data by this copy.
func (d *RandomDeployment) restoreTemporalData() error {
	if d.copied {
		return d.temporal.RestoreData(d.Context())
	}
	d.copied = true
	return d.temporal.CopyData(d.Context())
}

// startTemporalAfterDataLoss starts Temporal after a fault has replaced or deleted Temporal's data. The
// signals that no workflow has handled are lost with this data, so the clients send all reports again, as
// agents do when they start.
func (d *RandomDeployment) startTemporalAfterDataLoss() error {
	err := d.startTemporal()
	d.ledger.forgetReports()
	return err
}

// startTemporal starts Temporal unless the end of another fault has started it.
func (d *RandomDeployment) startTemporal() error {
	select {
	case <-d.temporal.Ended():
		return d.temporal.Start(d.Context())
	default:
		return nil
	}
}

// terminateWorkflow terminates a random open workflow. The signals that this workflow has not handled are
// lost.
func (d *RandomDeployment) terminateWorkflow(r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(d.Context(), 10*time.Second)
	defer cancel()
	w := &observation{executions: map[string]execution{}}
	if err := d.readExecutions(ctx, w); err != nil || len(w.executions) == 0 {
		return err
	}
	err := d.client.TerminateWorkflow(ctx, pick(r, slices.Sorted(maps.Keys(w.executions))), "", "torture")
	d.ledger.forgetReports()
	return err
}

// PlannedFault is a fault of a timeline. The fault begins when the duration `at` has passed since the begin
// of the run, and lasts for the duration `lasts`.
type PlannedFault struct {
	kind      faultKind
	at, lasts time.Duration
	seed      uint64
}

// DrawTimeline draws the faults of a run of the given duration. Faults overlap, but two faults of the same
// kind do not.
func drawTimeline(seed uint64, duration time.Duration, kinds []faultKind) (timeline []PlannedFault) {
	r := rand.New(rand.NewPCG(seed, 0))
	var weighted []faultKind
	for _, k := range kinds {
		weighted = append(weighted, slices.Repeat([]faultKind{k}, k.weight)...)
	}
	free := map[string]time.Duration{}
	for at := 2 * time.Second; at < duration; at += time.Second/2 + time.Duration(r.Int64N(int64(3*time.Second))) {
		f := PlannedFault{kind: pick(r, weighted), at: at, seed: r.Uint64()}
		f.lasts = time.Second/2 + time.Duration(r.Int64N(int64(f.kind.longest)))
		if at < free[f.kind.name] {
			continue
		}
		free[f.kind.name] = at + f.lasts + time.Second
		timeline = append(timeline, f)
	}
	return timeline
}

// drawKills draws a timeline that kills one process in each interval, and spares the survivors.
func drawKills(seed uint64, duration, interval time.Duration) (timeline []PlannedFault) {
	r := rand.New(rand.NewPCG(seed, 0))
	kill := faultKind{
		name:    "process killed",
		longest: time.Second,
		begin: func(d *RandomDeployment, r *rand.Rand) (func() error, error) {
			survivors := d.survivors()
			pick(r, slices.DeleteFunc(slices.Clone(d.Processes), func(p *BerthProcess) bool {
				return slices.Contains(survivors, p)
			})).kill()
			return noop, nil
		},
	}
	for at := interval; at < duration; at += interval {
		timeline = append(timeline, PlannedFault{kind: kill, at: at, lasts: kill.longest, seed: r.Uint64()})
	}
	return timeline
}

// RunFaults runs the faults of a timeline and returns how many faults of each kind it has begun. All faults
// have ended when it returns.
func (d *RandomDeployment) RunFaults(timeline []PlannedFault) map[string]int {
	d.Helper()
	counts, began := map[string]int{}, time.Now()
	var counting sync.Mutex
	var faults sync.WaitGroup
	servers := map[string]*sync.Mutex{} // a server is killed or started by one fault at a time
	for _, f := range timeline {
		pause(d.Context(), time.Until(began.Add(f.at)))
		if d.Context().Err() != nil {
			break
		}
		server := servers[f.kind.server()]
		if server == nil {
			server = &sync.Mutex{}
			servers[f.kind.server()] = server
		}
		faults.Go(func() {
			if d.runFault(f, server) {
				counting.Lock()
				defer counting.Unlock()
				counts[f.kind.name]++
			}
		})
	}
	faults.Wait()
	return counts
}

// server returns the first word of the name, which is the server that the fault hits.
func (k faultKind) server() string {
	first, _, _ := strings.Cut(k.name, " ")
	return first
}

// runFault begins and ends a fault, and reports whether it began.
func (d *RandomDeployment) runFault(f PlannedFault, server *sync.Mutex) bool {
	server.Lock()
	end, err := f.kind.begin(d, rand.New(rand.NewPCG(f.seed, 1)))
	server.Unlock()
	if err != nil {
		d.Logf("the fault %q after %s did not begin: %v", f.kind.name, f.at, err)
	}
	if end == nil {
		return false
	}
	pause(d.Context(), f.lasts)
	server.Lock()
	defer server.Unlock()
	if err := retry(10, end); err != nil {
		d.Errorf("the fault %q after %s did not end: %v", f.kind.name, f.at, err)
	}
	return err == nil
}

// retry calls f until it succeeds, at most n times, with a pause after each failure.
func retry(n int, f func() error) (err error) {
	for range n {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// pause waits for the duration, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
