package server

import (
	"context"
	"sync"
	"time"

	"berth/internal/coalesce"
)

// recentResult gives requests the result of an operation. The requests share one run of the operation at a
// time, and the process keeps its result for a short time. Therefore, any number of clients without a token
// can cause only a limited number of runs. A run that fails has no result: the next request causes another
// run.
type recentResult[V any] struct {
	run  func(context.Context) (V, error)
	runs *coalesce.Group[V]

	mu    sync.Mutex
	keep  time.Duration
	last  V
	until time.Time // last is valid until this time
}

func newRecentResult[V any](keep time.Duration, run func(context.Context) (V, error)) *recentResult[V] {
	return &recentResult[V]{run: run, runs: coalesce.NewGroup[V](0), keep: keep}
}

// kept returns the result of the last run. The result ok is false if the result is too old.
func (r *recentResult[V]) kept() (last V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, time.Now().Before(r.until)
}

// read returns the result of the last run, or of a new run if the last one is too old. A new run continues
// when the requests that wait for it have left, because its result serves the next requests.
func (r *recentResult[V]) read(ctx context.Context) (V, error) {
	if last, ok := r.kept(); ok {
		return last, nil
	}
	return r.runs.Do(ctx, func(ctx context.Context) (V, error) {
		if last, ok := r.kept(); ok {
			return last, nil
		}
		found, err := r.run(context.WithoutCancel(ctx))
		if err != nil {
			return found, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.until = found, time.Now().Add(r.keep)
		return found, nil
	})
}
