package db

import (
	"context"
	"sync/atomic"
)

// ChangeCount counts the objects that a request writes. Objects of a transaction that is repeated or rolled
// back count too, because they cost as much.
type ChangeCount struct{ objects atomic.Int64 }

// Objects returns the number of objects so far.
func (c *ChangeCount) Objects() int { return int(c.objects.Load()) }

type changeCountKey struct{}

// WithChangeCount returns a context whose writes are counted.
func WithChangeCount(ctx context.Context) (context.Context, *ChangeCount) {
	c := new(ChangeCount)
	return context.WithValue(ctx, changeCountKey{}, c), c
}

// CountChanges counts the writes of objects for the request to which the context belongs, if any.
func CountChanges(ctx context.Context, objects int) {
	if c, ok := ctx.Value(changeCountKey{}).(*ChangeCount); ok {
		c.objects.Add(int64(objects))
	}
}
