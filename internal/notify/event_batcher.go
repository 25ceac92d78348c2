package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"berth/internal/coalesce"
)

// maxBatch is the maximum number of events in one request. A request contains more events only if one call to
// Send contains more.
const maxBatch = 200

// EventBatcher sends the events of concurrent callers in shared requests: events that arrive while a request
// runs are sent in the next request. If they are too many for one request, the projects take turns, so that
// a project with many events does not delay the events of others. EventBatcher does not store events: each
// caller waits for the outcome of its own events, and must send these events again after an error.
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
		Client:  func(events []Event) string { return events[0].Project },
		Size:    func(events []Event) int { return len(events) },
		MaxSize: maxBatch,
	})
	return b
}

// Send sends events, all of one project, and returns Nova's code for each event. If ctx ends before the
// request with these events starts, the events are not sent.
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
	codes, err := b.sendInParts(ctx, events)
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

// sendInParts sends events in one request. If Nova rejects the request as too large, sendInParts sends each
// half of the events in a request of its own. An event that is too large even alone has Nova's code 413.
func (b *EventBatcher) sendInParts(ctx context.Context, events []Event) ([]int, error) {
	codes, err := b.send(ctx, events)
	switch {
	case !errors.Is(err, ErrTooLarge):
		return codes, err
	case len(events) == 1:
		slog.ErrorContext(ctx, "Nova rejected an event as too large", "event", events[0], "error", err)
		return []int{http.StatusRequestEntityTooLarge}, nil
	}
	middle := len(events) / 2
	first, err := b.sendInParts(ctx, events[:middle])
	if err != nil {
		return nil, err
	}
	second, err := b.sendInParts(ctx, events[middle:])
	return slices.Concat(first, second), err
}
