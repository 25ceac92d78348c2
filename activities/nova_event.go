package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"berth/internal/network"
	"berth/internal/notify"
)

// EventSender sends external events to Nova.
type EventSender interface {
	// Send delivers events and returns Nova's code for each.
	Send(ctx context.Context, events []notify.Event) ([]int, error)
}

// NotifyNova sends the recorded events of a port to Nova, oldest first. NotifyNova sends an event before it deletes the event's row. A
// crash may therefore cause NotifyNova to send an event twice, but never to lose an event.
func (a *Activities) NotifyNova(ctx context.Context, key string) error {
	defer startHeartbeat(ctx)()
	id, err := parseUUID(key)
	if err != nil {
		return err
	}
	recorded, err := a.Store.Network.NovaEvents(ctx, id)
	if err != nil || len(recorded) == 0 {
		return classify(err)
	}
	events, ids := make([]notify.Event, len(recorded)), make([]int64, len(recorded))
	for i, e := range recorded {
		events[i] = notify.Event{Server: e.Server, Name: e.Name, Status: e.Status, Tag: e.Tag}
		ids[i] = e.ID
	}
	ctx, stop := ignoreCancellation(ctx)
	defer stop()
	codes, err := a.Nova.Send(ctx, events)
	if errors.Is(err, notify.ErrRejected) { // no retry can fix it, and the next events must not wait for it
		activity.GetLogger(ctx).Error("Nova rejected events finally; they are dropped", "port", key, "events", events, "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	var undelivered []network.NovaEvent
	if codes != nil {
		undelivered = network.NovaEventsToResend(recorded, codes)
	}
	delivered := slices.DeleteFunc(ids, func(id int64) bool {
		return slices.ContainsFunc(undelivered, func(e network.NovaEvent) bool { return e.ID == id })
	})
	if err := a.Store.Network.DeleteNovaEvents(ctx, delivered); err != nil || len(undelivered) == 0 {
		return classify(err)
	}
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("Nova does not know the server %s yet", undelivered[0].Server), retryRequested,
		temporal.ApplicationErrorOptions{NextRetryDelay: max(undelivered[0].Age/2, time.Second), Category: temporal.ApplicationErrorCategoryBenign})
}
