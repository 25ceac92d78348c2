package notify

import (
	"context"
	"errors"
	"sync"
)

// maxBatch is how many events one request contains, unless a single caller has more.
const maxBatch = 200

// EventBatcher sends the events of concurrent callers in shared requests: events that arrive during a request go into the next
// one. It stores nothing: each caller waits for the outcome of its own events and repeats them after an error.
type EventBatcher struct {
	send func(ctx context.Context, events []Event) ([]int, error)

	mu      sync.Mutex
	waiting []*call
	sending bool
}

// call is the events of one caller and their outcome.
type call struct {
	ctx    context.Context
	events []Event
	codes  []int
	err    error
	done   chan struct{}
}

// NewEventBatcher returns a batcher that sends with this function, such as Nova.Send. The function must have a time-out of its
// own.
func NewEventBatcher(send func(context.Context, []Event) ([]int, error)) *EventBatcher {
	return &EventBatcher{send: send}
}

// Send sends events and returns Nova's code for each. The events of a caller whose ctx ends before its turn are not sent.
func (b *EventBatcher) Send(ctx context.Context, events []Event) ([]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	c := &call{ctx: ctx, events: events, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if !b.sending {
		b.sending = true
		go b.sendUntilIdle(context.WithoutCancel(ctx))
	}
	b.mu.Unlock()
	select {
	case <-c.done:
		return c.codes, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sendUntilIdle sends until no caller waits.
func (b *EventBatcher) sendUntilIdle(ctx context.Context) {
	for calls := b.nextCalls(); len(calls) > 0; calls = b.nextCalls() {
		b.deliver(ctx, calls)
	}
}

// nextCalls returns the calls for the next request, in their order. An empty result ends sendUntilIdle.
func (b *EventBatcher) nextCalls() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken []*call
	for size := 0; len(b.waiting) > 0; b.waiting = b.waiting[1:] {
		c := b.waiting[0]
		if c.ctx.Err() != nil {
			continue
		}
		if size += len(c.events); size > maxBatch && len(taken) > 0 {
			return taken
		}
		taken = append(taken, c)
	}
	b.waiting, b.sending = nil, len(taken) > 0
	return taken
}

// deliver sends the events of all calls in one request. If Nova rejects the whole request, it sends the events of each call
// alone, so that one invalid event does not affect other callers.
func (b *EventBatcher) deliver(ctx context.Context, calls []*call) {
	var events []Event
	for _, c := range calls {
		events = append(events, c.events...)
	}
	codes, err := b.send(ctx, events)
	if errors.Is(err, ErrRejected) && len(calls) > 1 {
		for _, c := range calls {
			b.deliver(ctx, []*call{c})
		}
		return
	}
	for _, c := range calls {
		if c.err = err; err == nil {
			c.codes, codes = codes[:len(c.events)], codes[len(c.events):]
		}
		close(c.done)
	}
}
