package main

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

// watcher sees in the rows when things have got where they should. It asks for all that is awaited at once, so
// that watching costs the same however many wait.
type watcher struct {
	rows   *pgxpool.Pool
	behind string // lists those of $1, an array of IDs, that are not there yet
	every  time.Duration
	wake   chan struct{} // something is awaited
	mu     sync.Mutex
	awaits map[string]chan struct{}
}

func watch(ctx context.Context, rows *pgxpool.Pool, every time.Duration, behind string, fail context.CancelCauseFunc) *watcher {
	w := &watcher{rows: rows, behind: behind, every: every, wake: make(chan struct{}, 1), awaits: map[string]chan struct{}{}}
	go func() {
		for ctx.Err() == nil {
			ids := w.awaited()
			if len(ids) == 0 { // one that has nothing to see costs nothing
				select {
				case <-ctx.Done():
				case <-w.wake:
				}
				continue
			}
			if err := w.look(ctx, ids); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("watch the rows: %w", err))
				return
			}
			pause(ctx, w.every)
		}
	}()
	return w
}

func (w *watcher) awaited() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.awaits))
}

func (w *watcher) look(ctx context.Context, ids []string) error {
	rows, err := w.rows.Query(ctx, w.behind, ids)
	if err != nil {
		return err
	}
	behind, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	waits := map[string]bool{}
	for _, id := range behind {
		waits[id] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if !waits[id] {
			close(w.awaits[id])
			delete(w.awaits, id)
		}
	}
	return nil
}

// patience is how long one thing may take before the run has failed.
const patience = 3 * time.Minute

// await returns when all of them have got there.
func (w *watcher) await(ctx context.Context, ids ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	var there []chan struct{}
	w.mu.Lock()
	for _, id := range ids {
		c := make(chan struct{})
		w.awaits[id] = c
		there = append(there, c)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	for i, c := range there {
		select {
		case <-c:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", ids[i], context.Cause(ctx))
		}
	}
	return nil
}

var errLate = fmt.Errorf("not there after %s", patience)
