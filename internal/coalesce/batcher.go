// Package coalesce combines concurrent requests into fewer operations: Batcher handles in one operation the requests that
// arrive while the previous operation runs, Group shares the result of one call, and Loop repeats a function until no caller
// needs another run. The package does not depend on what the operations do.
package coalesce

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

var (
	// ErrPanic is the error of the calls whose operation panicked. The log contains the panic and its stack.
	ErrPanic = errors.New("the operation panicked")
	// errUnfinished is the error of a call that Run has not finished.
	errUnfinished = errors.New("the operation returned no result")
)

// Config describes how a Batcher forms and runs batches. Only Run is required.
type Config[T, R any] struct {
	// Run handles one batch, whose calls are in the order of their arrival. Run calls Finish once for every call.
	Run func(ctx context.Context, batch []*Call[T, R])
	// Queue returns the queue of an item. Each queue runs one batch at a time. If Queue is nil, there is one queue.
	Queue func(T) string
	// Exclusive returns the keys of an item. Items with a common key are never in the same batch, and keep their order.
	Exclusive func(T) []string
	// Size returns the size of an item. If Size is nil, every item has the size 1. The items of a batch have a total size of at
	// most MaxSize, unless the batch has only one item.
	Size    func(T) int
	MaxSize int // 0: unlimited
	// Timeout limits the duration of Run's context; 0: no limit. Timeout does not apply to a call that runs inline.
	Timeout time.Duration
	// Delay is the pause before each batch runs. Items that arrive during the pause join the batch.
	Delay time.Duration
	// Inline makes the first caller of an idle queue run its item alone, in its own goroutine and with its own context.
	Inline bool
	// Linger returns the maximum pause after a batch of several calls. The pause ends early when as many new calls wait as the
	// batch had: callers that got their results at the same time tend to call again at the same time. If Linger is nil, there
	// is no pause.
	Linger func(calls int, took time.Duration) time.Duration
}

// Batcher collects the items of concurrent callers in queues. It is safe for concurrent use.
type Batcher[T, R any] struct {
	config Config[T, R]
	mu     sync.Mutex
	queues map[string]*queue[T, R] // queues with a running or waiting call, by name
}

// queue holds the calls that wait for the next batch.
type queue[T, R any] struct {
	waiting  []*Call[T, R]
	expected int           // number of waiting calls at which linger ends early
	complete chan struct{} // closed when the expected number of calls wait
}

// Call is one caller's item and its result.
type Call[T, R any] struct {
	Item  T
	ctx   context.Context
	value R
	err   error
	ended bool
	done  chan struct{}
}

// Finish sets the result of a call and releases its caller. Only Run may call it; a second result is ignored.
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

// Do adds an item to its queue and returns its result. If ctx ends first, Do returns the error of ctx. The item is then dropped
// unless its batch is already running. The context of a batch has the values of one caller's context, but that caller cannot
// cancel it.
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
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var zero R
		return zero, ctx.Err()
	}
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

// join adds a call to a queue and reports whether the queue was idle. If Inline is set, a call that joins an idle queue runs
// immediately and is not added to the waiting calls.
func (b *Batcher[T, R]) join(name string, c *Call[T, R]) (idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, busy := b.queues[name]
	if !busy {
		q = &queue[T, R]{}
		b.queues[name] = q
		if b.config.Inline {
			return true
		}
	}
	q.waiting = append(q.waiting, c)
	if len(q.waiting) == q.expected {
		close(q.complete)
	}
	return !busy
}

// leave ends an inline call. If other calls wait, leave starts a goroutine that runs their batches.
func (b *Batcher[T, R]) leave(ctx context.Context, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queues[name].waiting) == 0 {
		delete(b.queues, name)
		return
	}
	go b.serve(context.WithoutCancel(ctx), name)
}

// serve runs batches until no call waits. It runs in its own goroutine, so that a caller that gives up does not stop the
// others.
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

// run runs one batch. If the operation panics, the calls of the batch fail and the process continues.
func (b *Batcher[T, R]) run(ctx context.Context, batch []*Call[T, R]) {
	defer func() {
		err := errUnfinished
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "panic in a batch of coalesced calls", "panic", p, "stack", string(debug.Stack()))
			err = ErrPanic
		}
		for _, c := range batch {
			var zero R
			c.Finish(zero, err)
		}
	}()
	if b.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.config.Timeout)
		defer cancel()
	}
	b.config.Run(ctx, batch)
}

// next removes the calls of the next batch from a queue. It drops calls whose callers have given up. If no call is left, next
// returns an empty batch and deletes the queue.
func (b *Batcher[T, R]) next(name string) []*Call[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	q.expected = 0
	var batch, later []*Call[T, R]
	size, full, keys := 0, false, map[string]bool{}
	for _, c := range q.waiting {
		if c.ctx.Err() != nil {
			continue
		}
		conflict := b.claim(keys, c.Item)
		if !full && !conflict {
			n := b.sizeOf(c.Item)
			full = b.config.MaxSize > 0 && len(batch) > 0 && size+n > b.config.MaxSize
			size += n
		}
		if full || conflict {
			later = append(later, c)
		} else {
			batch = append(batch, c)
		}
	}
	if q.waiting = later; len(batch) == 0 {
		delete(b.queues, name)
	}
	return batch
}

// claim adds the exclusive keys of an item to `keys`, the exclusive keys of the calls before it. It reports whether an earlier
// call has one of the item's keys.
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
