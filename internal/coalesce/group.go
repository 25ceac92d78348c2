package coalesce

import (
	"context"
	"time"
)

// Group shares the result of one call among the callers that arrive before the call begins. A caller that
// arrives while a call runs waits for the next call, so that no caller gets a result that is older than the
// caller's request.
type Group[V any] struct {
	batcher *Batcher[func(context.Context) (V, error), V]
}

// NewGroup returns a Group that waits for the given delay before each call, so that more callers can share
// the result of the call.
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

// Do returns the result of one caller's function. All functions that callers give to the same Group must
// compute the same value. The function f may run after its own caller has given up, so f must not use values
// that this caller changes later.
func (g *Group[V]) Do(ctx context.Context, f func(context.Context) (V, error)) (V, error) {
	return g.batcher.Do(ctx, f)
}

// Waiting returns the number of callers that wait for a call to begin.
func (g *Group[V]) Waiting() int { return g.batcher.Waiting() }
