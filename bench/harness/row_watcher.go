package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RowWatcher polls database rows until objects have reached a state. One query reads the states of all
// awaited objects, so that the number of queries does not grow with the number of objects.
type RowWatcher struct {
	rows *pgxpool.Pool
	// SQL query. Its parameter $1 is an array of IDs; it returns those that have not reached the state
	pending  string
	interval time.Duration
	wake     chan struct{} // receives when await adds an ID
	mu       sync.Mutex
	awaited  map[string]chan struct{} // closed when the object has reached the state
}

// NewRowWatcher starts a watcher that runs until ctx ends. If a query of the watcher fails, the watcher calls
// the function `fail` with the query's error.
func NewRowWatcher(
	ctx context.Context,
	rows *pgxpool.Pool,
	interval time.Duration,
	pending string,
	fail context.CancelCauseFunc,
) *RowWatcher {
	w := &RowWatcher{
		rows:     rows,
		pending:  pending,
		interval: interval,
		wake:     make(chan struct{}, 1),
		awaited:  map[string]chan struct{}{},
	}
	go w.poll(ctx, fail)
	return w
}

func (w *RowWatcher) poll(ctx context.Context, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		ids := w.awaitedIDs()
		if len(ids) == 0 { // no queries while nothing is awaited
			select {
			case <-ctx.Done():
			case <-w.wake:
			}
			continue
		}
		if err := w.query(ctx, ids); err != nil && ctx.Err() == nil {
			fail(fmt.Errorf("watch rows: %w", err))
			return
		}
		Pause(ctx, w.interval)
	}
}

func (w *RowWatcher) awaitedIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.awaited))
}

// query runs the SQL query once, and ends the waiting for the objects that have reached the state.
func (w *RowWatcher) query(ctx context.Context, ids []string) error {
	rows, err := w.rows.Query(ctx, w.pending, ids)
	if err != nil {
		return err
	}
	listed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	pending := map[string]bool{}
	for _, id := range listed {
		pending[id] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if !pending[id] {
			close(w.awaited[id])
			delete(w.awaited, id)
		}
	}
	return nil
}

// WaitTimeout is how long a measurement waits for one condition before the measurement fails.
const WaitTimeout = 3 * time.Minute

// ErrTimeout means that a condition did not become true within WaitTimeout.
var ErrTimeout = fmt.Errorf("timeout after %s", WaitTimeout)

// Await waits until all objects with the given IDs have reached the state for which the watcher was created.
func (w *RowWatcher) Await(ctx context.Context, ids ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, WaitTimeout, ErrTimeout)
	defer cancel()
	var reached []chan struct{}
	w.mu.Lock()
	for _, id := range ids {
		c := make(chan struct{})
		w.awaited[id] = c
		reached = append(reached, c)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	for i, c := range reached {
		select {
		case <-c:
		case <-ctx.Done():
			return fmt.Errorf("wait until object %s reaches the awaited state: %w",
				ids[i], context.Cause(ctx))
		}
	}
	return nil
}

// PollInterval is the usual interval between two queries of a RowWatcher that waits for a state of rows.
// PollInterval is short compared with the measured times, and long enough that the queries use little CPU
// time.
const PollInterval = 25 * time.Millisecond
