package notify

import (
	"context"
	"errors"

	"berth/internal/coalesce"
)

// maxBatch is the maximum number of events in one request. A request contains more events only if one call to
// Send contains more.
const maxBatch = 200

// EventBatcher sends the events of concurrent callers in shared requests: events that arrive while a request
// runs are sent in the next request. EventBatcher does not store events: each caller waits for the outcome of
// its own events, and must send these events again after an error.
type EventBatcher struct {
	send    func(ctx context.Context, events []Event) ([]int, error)
	batcher *coalesce.Batcher[[]Event, []int]
}

type call = coalesce.Call[[]Event, []int]

// NewEventBatcher returns a batcher that sends events with the function `send`, for example Nova.Send. The
// function `send` must have its own time-out.
func NewEventBatcher(send func(context.Context, []Event) ([]int, error)) *EventBatcher {
	b := &EventBatcher{send: send}
	b.batcher = coalesce.NewBatcher(coalesce.Config[[]Event, []int]{
		Run:     b.deliver,
		Size:    func(events []Event) int { return len(events) },
		MaxSize: maxBatch,
	})
	return b
}

// Send sends events and returns Nova's code for each event. If ctx ends before the request with these events
// starts, the events are not sent.
func (b *EventBatcher) Send(ctx context.Context, events []Event) ([]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	return b.batcher.Do(ctx, events)
}

// deliver sends the events of all calls in one request. If Nova rejects the whole request, `deliver` sends
// the events of each call in a separate request, so that one invalid event does not affect other callers.
func (b *EventBatcher) deliver(ctx context.Context, calls []*call) {
	var events []Event
	for _, c := range calls {
		events = append(events, c.Item...)
	}
	codes, err := b.send(ctx, events)
	if errors.Is(err, ErrRejected) && len(calls) > 1 {
		for _, c := range calls {
			b.deliver(ctx, []*call{c})
		}
		return
	}
	for _, c := range calls {
		if err != nil {
			c.Finish(nil, err)
			continue
		}
		c.Finish(codes[:len(c.Item)], nil)
		codes = codes[len(c.Item):]
	}
}
