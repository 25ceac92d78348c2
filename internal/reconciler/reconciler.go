// Package reconciler compares the rows of the database with the workflows in Temporal, and the usage of
// inventories with the allocations. The rows are authoritative, so the reconciler repairs Temporal if there
// is a difference. It repairs most differences with a nudge: a note in the outbox that starts or signals a
// workflow, so that the workflow reads its row again. Temporal may lose executions, search attributes, the
// schedule or all its data, and a person may end a workflow by mistake. The reconciler is not itself a
// workflow, so that it survives the loss of every workflow.
package reconciler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"berth/internal/namespace"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/reportstore"
)

const (
	// endedInterval is the interval at which the reconciler searches for workflows that a person has ended.
	endedInterval = 2 * time.Second
	// lateInterval is the interval at which the reconciler searches for rows for which a step is overdue.
	lateInterval = 2 * time.Second
	// ensureInterval is the interval at which the reconciler checks the schedule and the search attributes.
	ensureInterval = 5 * time.Second
	// comparisonInterval is the minimum time between two comparisons of all rows with all open executions.
	comparisonInterval = 20 * time.Second
	// repeatedInterval is the time from a comparison that has found a difference to the next comparison.
	repeatedInterval = 5 * time.Second
	// comparisonShare limits the share of the time in which comparisons work: after a comparison with one
	// second of work, the reconciler waits at least comparisonShare seconds.
	comparisonShare = 10
	// leaderInterval is the interval at which a process tries to become the only process whose reconciler
	// runs.
	leaderInterval = 2 * time.Second
)

// Options are the dependencies of a Reconciler.
type Options struct {
	DB        *db.DB
	Store     *outbox.Store
	Client    client.Client
	Namespace string // Temporal namespace of Client
	// EnsureSchedule creates the schedule of the sweep if it does not exist.
	EnsureSchedule func(context.Context) error
	Metrics        prometheus.Registerer
	// Overdue finds the objects that should have made progress by now, so that the reconciler logs them.
	Overdue func(context.Context) ([]reportstore.OverdueObject, error)
	// HideProjects means that workflows have no search attribute with the project of their object.
	HideProjects bool
	// RepairUsage compares the usage of each inventory with the allocations, corrects it, and returns what it
	// has compared and corrected.
	RepairUsage func(context.Context) (compared int64, corrected []string, err error)
}

// Reconciler compares the rows with Temporal. Of several processes, only one runs its Reconciler at a time.
type Reconciler struct {
	Options
	binding   *namespace.Binding
	restarted *prometheus.CounterVec
	objects   *objectCount
}

// New creates a Reconciler and registers its metrics.
func New(o Options) *Reconciler {
	r := &Reconciler{
		Options: o,
		binding: namespace.New(o.Store, o.Client, o.Namespace),
		objects: newObjectCount(o.Metrics),
		restarted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_rows_nudged_total",
			Help: "Rows whose workflow this process's reconciler started again or nudged, by the reason: ended (a person ended the workflow), late (a step of the row was overdue), unattended (no workflow was open), attributes (the search attributes differed).",
		}, []string{"reason"}),
	}
	o.Metrics.MustRegister(r.restarted)
	return r
}

// Run compares and repairs until ctx ends. While the reconciler of another process runs, Run waits.
func (r *Reconciler) Run(ctx context.Context) {
	failures := failureLog{
		what: "could not acquire the lock of the process that compares the rows with Temporal",
	}
	for ctx.Err() == nil {
		_, err := r.DB.InOneProcess(ctx, "compare the rows with Temporal", r.runAsLeader)
		failures.log(ctx, err)
		sleep(ctx, leaderInterval)
	}
}

// runAsLeader runs all parts of the reconciler until ctx ends, or until the database is bound to another
// Temporal namespace than this process uses.
func (r *Reconciler) runAsLeader(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer r.objects.reset()
	defer parts.Wait()
	defer cancel()
	ended, late := newEndedSearch(r), newLateSearch(r)
	overdue, compare := newOverdueLog(r.Overdue), newComparison(r)
	for _, part := range []part{
		{"restarting the workflows that a person has ended failed", r.whileBound(cancel, every(endedInterval, ended.restart))},
		{"nudging the rows for which a step is overdue failed", r.whileBound(cancel, every(lateInterval, late.nudge))},
		{"creating the schedule of the sweep failed", r.whileBound(cancel, every(ensureInterval, r.EnsureSchedule))},
		{"creating the search attributes failed", r.whileBound(cancel, every(ensureInterval, r.binding.EnsureSearchAttributes))},
		{"comparing the rows with Temporal failed", r.whileBound(cancel, compare.run)},
		// These two need no Temporal. While Temporal is unavailable, objects become overdue.
		{"looking for overdue objects failed", every(overdueInterval, overdue.search)},
		{"comparing the usage of inventories with the allocations failed", r.repairUsage},
	} {
		parts.Go(func() { part.repeat(ctx) })
	}
	parts.Wait()
}

// part is one of the parts of the reconciler, which run beside each other.
type part struct {
	failure string // what the log says when the part fails
	run     func(context.Context) (pause time.Duration, err error)
}

// repeat runs the part again and again until ctx ends.
func (p part) repeat(ctx context.Context) {
	failures := failureLog{what: p.failure}
	for ctx.Err() == nil {
		pause, err := p.run(ctx)
		failures.log(ctx, err)
		sleep(ctx, pause)
	}
}

// whileBound returns a part that runs only while the database is bound to the Temporal namespace of this
// process. If the database is bound to another namespace, the part calls stop instead. If Temporal is
// unavailable, the part fails.
func (r *Reconciler) whileBound(
	stop func(),
	run func(context.Context) (time.Duration, error),
) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		bound, err := r.binding.IsBound(ctx)
		switch {
		case err != nil:
			return ensureInterval, err
		case !bound:
			stop()
			return 0, nil
		}
		return run(ctx)
	}
}

// every returns a part of the reconciler that pauses for the same time after each call.
func every(
	pause time.Duration,
	run func(context.Context) error,
) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) { return pause, run(ctx) }
}

// restart enqueues a note, which starts or signals the workflow, for each workflow ID whose object has a row.
func (r *Reconciler) restart(ctx context.Context, reason string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	n, err := r.Store.RestartWorkflows(ctx, ids)
	if err != nil {
		return err
	}
	r.restarted.WithLabelValues(reason).Add(float64(n))
	if n > 0 {
		slog.InfoContext(ctx, "workflows restarted", "reason", reason, "workflows", n, "example", ids[0])
	}
	return nil
}

// failureLog logs a failure only if it differs from the failure before.
type failureLog struct{ what, last string }

func (l *failureLog) log(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.last {
		slog.WarnContext(ctx, l.what, "error", err)
	}
	l.last = text
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// callTimeout is the maximum duration of one call to Temporal.
const callTimeout = 10 * time.Second

func withCallTimeout[T any](
	ctx context.Context,
	what string,
	call func(context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	result, err := call(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return result, err
}
