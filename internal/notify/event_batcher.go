package notify

import (
	"context"
	"errors"
	"sync"
)

// maxBatch is how many events one request carries, unless one caller has more.
const maxBatch = 200

// Batch sends the events of many callers together: the first at once, and what comes while a request is under way
// with the next. It keeps nothing: a caller waits for its own outcome, and repeats what failed.
type EventBatcher struct {
	send func(ctx context.Context, events []Event) ([]int, error)

	mu      sync.Mutex
	waiting []*call
	busy    bool
}

// call is one caller's events and what became of them.
type call struct {
	ctx    context.Context
	events []Event
	codes  []int
	err    error
	done   chan struct{}
}

// NewBatch makes a Batch that sends by that function, as Nova.Send is; it has to end by itself.
func NewEventBatcher(send func(context.Context, []Event) ([]int, error)) *EventBatcher {
	return &EventBatcher{send: send}
}

// Send delivers events and returns Nova's code for each. A caller that gives up before its turn is left out.
func (b *EventBatcher) Send(ctx context.Context, events []Event) ([]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	c := &call{ctx: ctx, events: events, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if !b.busy {
		b.busy = true
		go b.run(context.WithoutCancel(ctx))
	}
	b.mu.Unlock()
	select {
	case <-c.done:
		return c.codes, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run sends until nobody waits.
func (b *EventBatcher) run(ctx context.Context) {
	for calls := b.take(); len(calls) > 0; calls = b.take() {
		b.deliver(ctx, calls)
	}
}

// take is the next callers' turn, in their order; none ends the run.
func (b *EventBatcher) take() []*call {
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
	b.waiting, b.busy = nil, len(taken) > 0
	return taken
}

// deliver sends the events of the callers in one request. One that Nova refuses as a whole is made again for each
// caller alone, so that nobody suffers for another's event.
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
