package coalesce

import (
	"context"
	"time"
)

// Group shares the result of one call among the callers that arrive before the call begins. A caller that arrives while a call
// runs waits for the next call, so that the result is never older than the request.
type Group[V any] struct {
	batcher *Batcher[func(context.Context) (V, error), V]
}

// NewGroup returns a Group that waits for the given delay before each call, so that more callers can share it.
func NewGroup[V any](delay time.Duration) *Group[V] {
	type function = func(context.Context) (V, error)
	return &Group[V]{NewBatcher(Config[function, V]{
		Delay: delay,
		Run: func(ctx context.Context, batch []*Call[function, V]) {
			value, err := batch[0].Item(ctx)
			for _, c := range batch {
				c.Finish(value, err)
			}
		},
	})}
}

// Do returns the result of one caller's function. All functions given to a Group must compute the same value. The function may
// run after its own caller has given up, so it must not use values that the caller changes.
func (g *Group[V]) Do(ctx context.Context, f func(context.Context) (V, error)) (V, error) {
	return g.batcher.Do(ctx, f)
}

// Waiting returns the number of callers that wait for a call to begin.
func (g *Group[V]) Waiting() int { return g.batcher.Waiting() }
