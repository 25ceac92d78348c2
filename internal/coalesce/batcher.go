// Package coalesce combines concurrent requests into fewer operations. A Batcher runs one operation for all
// requests that arrived while the previous operation ran, a Group shares the result of one call, and a Loop
// repeats a function until no caller needs another run. Package coalesce knows nothing about the content of
// the operations.
package coalesce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"berth/internal/panics"
)

var (
	// ErrBegun is wrapped by the error of Do if the caller's context ended while the batch with the caller's
	// item was running. The caller then does not know whether the operation succeeded for the item.
	ErrBegun = errors.New("the operation has begun")
	// errUnfinished is the error of a call for which Config.Run returned without calling Finish.
	errUnfinished = errors.New("the operation returned no result")
)

// Config describes how a Batcher forms and runs batches. Every field of Config except Run is optional.
type Config[T, R any] struct {
	// Run handles one batch, whose calls are in the order of their arrival or, with Client, of their turns.
	// Run must call Finish once for every call of the batch.
	Run func(ctx context.Context, batch []*Call[T, R])
	// Queue returns the name of an item's queue. In each queue, only one batch runs at a time. If Queue is
	// nil, all items are in the same queue.
	Queue func(T) string
	// Client returns the name of the client that an item belongs to. The clients of a queue take turns: a
	// batch gets one item of each client, then another item of each, and so on until it is full. The client
	// that has waited longest comes first, and a client comes last after a batch with one of its items. If
	// Client is nil, all items belong to the same client.
	Client func(T) string
	// Exclusive returns the keys of an item. Two items with a common key are never in the same batch, and run
	// in the order of their arrival or, with Client, of their turns.
	Exclusive func(T) []string
	// Size returns the size of an item. If the function Size is nil, every item has the size 1. The sum of
	// the sizes of a batch's items is at most MaxSize, unless the batch has only one item.
	Size    func(T) int
	MaxSize int // 0: unlimited
	// Timeout limits the duration of the context that Run gets; 0: no limit. Timeout does not limit a call
	// that runs inline (see Inline).
	Timeout time.Duration
	// Delay is the pause before each batch runs. Items that arrive during the Delay join the batch.
	Delay time.Duration
	// Inline makes Do itself run an item that arrives in an idle queue: alone, in the caller's goroutine and
	// with the caller's context.
	Inline bool
	// Linger returns the maximum pause after a batch of several calls. The pause ends early as soon as the
	// queue has as many waiting calls as the batch had. The pause exists because callers that got their
	// results at the same time tend to call again at the same time. If the function Linger is nil, there is
	// no pause after a batch.
	Linger func(calls int, took time.Duration) time.Duration
}

// Batcher collects the items of concurrent callers in queues. A Batcher is safe for concurrent use.
type Batcher[T, R any] struct {
	config Config[T, R]
	mu     sync.Mutex
	queues map[string]*queue[T, R] // queues with a running or waiting call, by name
}

// queue holds the calls that wait for the next batch.
type queue[T, R any] struct {
	waiting []*Call[T, R]
	batches int // number of batches so far; only counted with a Client
	// the turns of the clients that wait or were in the last batch; the lowest number comes first
	turns    map[string]int
	expected int           // number of waiting calls at which linger ends early
	complete chan struct{} // closed when the expected number of calls wait
}

// Call is an item of one caller, with the result for this item.
type Call[T, R any] struct {
	Item  T
	ctx   context.Context
	begun bool // the call is in a batch that runs or has run
	value R
	err   error
	ended bool
	done  chan struct{}
}

// Finish sets the result of a call, so that the method Do that waits for the call returns. Only Config.Run
// may call Finish. If Finish is called twice for the same call, the second result is ignored.
func (c *Call[T, R]) Finish(value R, err error) {
	if c.ended {
		return
	}
	c.value, c.err, c.ended = value, err, true
	close(c.done)
}

// NewBatcher returns a Batcher.
func NewBatcher[T, R any](c Config[T, R]) *Batcher[T, R] {
	return &Batcher[T, R]{config: c, queues: map[string]*queue[T, R]{}}
}

// Do adds an item to the item's queue, waits until a batch with the item has run, and returns the result. If
// ctx ends before the batch has run, Do returns the error of ctx; the error also wraps ErrBegun if the batch
// with the item is already running. An item whose ctx has ended before its batch runs is dropped. The context
// of a batch ends when the contexts of all callers of the batch have ended. The values in the context of a
// batch are those of the caller that found the queue idle, even if this caller's item was in an earlier
// batch.
func (b *Batcher[T, R]) Do(ctx context.Context, item T) (R, error) {
	c := &Call[T, R]{Item: item, ctx: ctx, done: make(chan struct{})}
	name := ""
	if b.config.Queue != nil {
		name = b.config.Queue(item)
	}
	if idle := b.join(name, c); idle && b.config.Inline {
		defer b.leave(ctx, name)
		b.config.Run(ctx, []*Call[T, R]{c})
		c.Finish(c.value, errUnfinished)
		return c.value, c.err
	} else if idle {
		go b.serve(context.WithoutCancel(ctx), name)
	}
	var zero R
	select {
	case <-c.done:
		// the batch was stopped because all its callers gave up
		if errors.Is(c.err, context.Canceled) && ctx.Err() != nil {
			return zero, b.abandon(c)
		}
		return c.value, c.err
	case <-ctx.Done():
		return zero, b.abandon(c)
	}
}

// abandon returns the error of a call whose caller gives up.
func (b *Batcher[T, R]) abandon(c *Call[T, R]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.begun {
		return fmt.Errorf("%w: %w", c.ctx.Err(), ErrBegun)
	}
	return c.ctx.Err()
}

// Waiting returns the number of calls that wait for a batch, over all queues.
func (b *Batcher[T, R]) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, q := range b.queues {
		n += len(q.waiting)
	}
	return n
}

// Queues returns the number of queues with a running or waiting call.
func (b *Batcher[T, R]) Queues() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queues)
}

// join adds a call to a queue and reports whether the queue was idle. If Inline is set, the first call of an
// idle queue runs immediately, so join does not add this call to the waiting calls.
func (b *Batcher[T, R]) join(name string, c *Call[T, R]) (idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, busy := b.queues[name]
	if !busy {
		q = &queue[T, R]{turns: map[string]int{}}
		b.queues[name] = q
		if b.config.Inline {
			return true
		}
	}
	q.waiting = append(q.waiting, c)
	b.beginTurn(q, c.Item)
	if len(q.waiting) == q.expected {
		close(q.complete)
	}
	return !busy
}

// leave ends an inline call. If other calls wait in the queue, leave starts a goroutine that runs the batches
// of these calls.
func (b *Batcher[T, R]) leave(ctx context.Context, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queues[name].waiting) == 0 {
		delete(b.queues, name)
		return
	}
	go b.serve(context.WithoutCancel(ctx), name)
}

// serve runs batches until no call waits. serve runs in a goroutine of its own, so that a caller that gives
// up does not stop the batches of other callers.
func (b *Batcher[T, R]) serve(ctx context.Context, name string) {
	for {
		if b.config.Delay > 0 {
			time.Sleep(b.config.Delay)
		}
		batch := b.next(name)
		if len(batch) == 0 {
			return
		}
		begin := time.Now()
		b.run(ctx, batch)
		if b.config.Linger != nil && len(batch) > 1 {
			b.linger(name, len(batch), b.config.Linger(len(batch), time.Since(begin)))
		}
	}
}

// run runs one batch. If Config.Run panics, the calls that Config.Run has not finished get panics.Err, and
// the process continues.
func (b *Batcher[T, R]) run(ctx context.Context, batch []*Call[T, R]) {
	err := errUnfinished
	defer func() {
		for _, c := range batch {
			var zero R
			c.Finish(zero, err)
		}
	}()
	defer panics.Recover(ctx, "a batch of coalesced calls", &err)
	if b.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.config.Timeout)
		defer cancel()
	}
	ctx, cancel := whileAwaited(ctx, batch)
	defer cancel()
	b.config.Run(ctx, batch)
}

// whileAwaited returns a context that ends when the contexts of all calls have ended.
func whileAwaited[T, R any](ctx context.Context, batch []*Call[T, R]) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	var left atomic.Int64
	left.Store(int64(len(batch)))
	var stops []func() bool
	for _, c := range batch {
		stops = append(stops, context.AfterFunc(c.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// next removes the calls of the next batch from a queue. next drops calls whose callers have given up. If no
// call is waiting, next returns an empty batch and deletes the queue.
func (b *Batcher[T, R]) next(name string) []*Call[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	q.expected = 0
	var batch, later []*Call[T, R]
	size, full, keys := 0, false, map[string]bool{}
	for _, c := range b.inTurn(q) {
		conflict := b.claim(keys, c.Item)
		if !full && !conflict {
			n := b.sizeOf(c.Item)
			full = b.config.MaxSize > 0 && len(batch) > 0 && size+n > b.config.MaxSize
			size += n
		}
		if full || conflict {
			later = append(later, c)
		} else {
			c.begun = true
			batch = append(batch, c)
		}
	}
	if q.waiting = later; len(batch) == 0 {
		delete(b.queues, name)
	}
	b.endTurns(q, batch)
	return batch
}

// inTurn returns the calls of a queue whose callers still wait, in the order in which batches get them.
func (b *Batcher[T, R]) inTurn(q *queue[T, R]) []*Call[T, R] {
	calls := slices.DeleteFunc(q.waiting, func(c *Call[T, R]) bool { return c.ctx.Err() != nil })
	if b.config.Client == nil {
		return calls
	}
	type turn struct{ round, client int }
	turns, rounds := map[*Call[T, R]]turn{}, map[string]int{}
	for _, c := range calls {
		client := b.config.Client(c.Item)
		turns[c] = turn{rounds[client], q.turns[client]}
		rounds[client]++
	}
	slices.SortStableFunc(calls, func(c, d *Call[T, R]) int {
		return cmp.Or(cmp.Compare(turns[c].round, turns[d].round), cmp.Compare(turns[c].client, turns[d].client))
	})
	return calls
}

// beginTurn gives a client that begins to wait a turn before the clients of the batch that runs.
func (b *Batcher[T, R]) beginTurn(q *queue[T, R], item T) {
	if b.config.Client == nil {
		return
	}
	client := b.config.Client(item)
	if _, known := q.turns[client]; !known {
		q.turns[client] = 2 * q.batches
	}
}

// endTurns counts a new batch, and moves the clients of the batch behind those that begin to wait while the
// batch runs.
func (b *Batcher[T, R]) endTurns(q *queue[T, R], batch []*Call[T, R]) {
	if b.config.Client == nil {
		return
	}
	q.batches++
	turns := map[string]int{}
	for _, c := range q.waiting {
		client := b.config.Client(c.Item)
		turns[client] = q.turns[client]
	}
	for _, c := range batch {
		turns[b.config.Client(c.Item)] = 2*q.batches + 1
	}
	q.turns = turns
}

// claim adds the exclusive keys of an item to `keys`, which contains the exclusive keys of the calls that
// arrived before the item. The result `conflict` is true if an earlier call has one of the item's keys.
func (b *Batcher[T, R]) claim(keys map[string]bool, item T) (conflict bool) {
	if b.config.Exclusive == nil {
		return false
	}
	own := b.config.Exclusive(item)
	for _, key := range own {
		conflict = conflict || keys[key]
	}
	for _, key := range own {
		keys[key] = true
	}
	return conflict
}

func (b *Batcher[T, R]) sizeOf(item T) int {
	if b.config.Size == nil {
		return 1
	}
	return b.config.Size(item)
}

// linger waits until the queue holds n waiting calls, or until `limit` has passed.
func (b *Batcher[T, R]) linger(name string, n int, limit time.Duration) {
	b.mu.Lock()
	q := b.queues[name]
	wait := len(q.waiting) < n
	q.expected, q.complete = n, make(chan struct{})
	complete := q.complete
	b.mu.Unlock()
	if !wait {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-complete:
	case <-timer.C:
	}
}
