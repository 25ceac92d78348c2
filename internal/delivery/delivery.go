// Package delivery sends the recorded Nova events of ports and the recorded notifications to Neutron's
// agents. Usually an activity sends them. While Temporal does not accept the note of a port or network (the
// outbox row that starts the workflow), Direct sends them without Temporal.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/store/notificationstore"
)

// EventSender sends external events to Nova.
type EventSender interface {
	// Send delivers events and returns Nova's code for each event.
	Send(ctx context.Context, events []notify.Event) ([]int, error)
}

// AgentPublisher publishes notifications to agents.
type AgentPublisher interface {
	// Publish publishes the notifications in order and returns the IDs of the published notifications.
	Publish(ctx context.Context, all []network.AgentNotification) (published []int64, err error)
}

// ErrClaimed means that another process sends the Nova events of the port, or the notifications of the
// network, now.
var ErrClaimed = errors.New("another process delivers them now, without Temporal")

// UnknownServerError means that Nova does not know the server of an event yet. The event is still recorded.
type UnknownServerError struct {
	Server string
	Age    time.Duration // age of the event
}

func (e *UnknownServerError) Error() string {
	return "Nova does not know the server " + e.Server + " yet"
}

// Sender sends the Nova events and agent notifications that the store has recorded. A message is sent
// before its row is deleted or marked. A crash may therefore cause a Sender to send a message twice, but
// never to lose a message. The calls to the other service have the deadline of the caller's context, but
// do not end when the context is cancelled, so that a cancelled caller learns whether the message arrived.
type Sender struct {
	Recorded *notificationstore.Store // the recorded events for Nova and notifications to agents
	Nova     EventSender
	Agents   AgentPublisher
}

// NovaEvents sends the events of a port to Nova, oldest first. NovaEvents returns ErrClaimed, an
// *UnknownServerError, or an error of the database or of Nova. NovaEvents drops events that Nova rejects
// permanently.
func (s Sender) NovaEvents(ctx context.Context, port uuid.UUID) error {
	recorded, err := s.Recorded.NovaEvents(ctx, port)
	if err != nil {
		return err
	}
	return s.sendNovaEvents(ctx, port, recorded)
}

func (s Sender) sendNovaEvents(ctx context.Context, port uuid.UUID, recorded []network.NovaEvent) error {
	if len(recorded) == 0 {
		return nil
	}
	events, ids := make([]notify.Event, len(recorded)), make([]int64, len(recorded))
	for i, e := range recorded {
		if e.Claimed {
			return ErrClaimed
		}
		events[i] = notify.Event{
			Server: e.Server,
			Name:   e.Name,
			Status: e.Status,
			Tag:    e.Tag,
		}
		ids[i] = e.ID
	}
	ctx, stop := IgnoreCancellation(ctx)
	defer stop()
	codes, err := s.Nova.Send(ctx, events)
	if errors.Is(err, notify.ErrRejected) { // no retry can fix it, and the next events must not wait for it
		slog.ErrorContext(ctx, "Nova rejected events permanently; they are dropped",
			"port", port, "events", len(events), "first", events[0], "error", err) // a port may have many
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
	if err := s.Recorded.DeleteNovaEvents(ctx, delivered); err != nil || len(undelivered) == 0 {
		return err
	}
	return &UnknownServerError{Server: undelivered[0].Server, Age: undelivered[0].Age}
}

// notificationBatch is the maximum number of notifications to agents that one query reads.
const notificationBatch = 100

// Notifications publishes the notifications of a network to the agents, oldest first, until no notification
// is left. Notifications returns ErrClaimed, or an error of the database or of RabbitMQ.
func (s Sender) Notifications(ctx context.Context, id uuid.UUID) error {
	return s.publishAll(ctx, func() ([]network.AgentNotification, error) {
		return s.Recorded.Unsent(ctx, id, notificationBatch)
	})
}

func (s Sender) publishAll(ctx context.Context, next func() ([]network.AgentNotification, error)) error {
	for {
		due, err := next()
		if err != nil || len(due) == 0 {
			return err
		}
		if slices.ContainsFunc(due, func(a network.AgentNotification) bool { return a.Claimed }) {
			return ErrClaimed
		}
		if err := s.publish(ctx, due); err != nil {
			return err
		}
	}
}

func (s Sender) publish(ctx context.Context, due []network.AgentNotification) error {
	ctx, stop := IgnoreCancellation(ctx)
	defer stop()
	published, err := s.Agents.Publish(ctx, due)
	if err := errors.Join(s.Recorded.MarkSent(context.WithoutCancel(ctx), published), err); err != nil {
		return fmt.Errorf("publish notifications: %w", err)
	}
	return nil
}

// IgnoreCancellation returns a context that has the deadline of ctx, but is not cancelled with ctx.
func IgnoreCancellation(ctx context.Context) (context.Context, context.CancelFunc) {
	uncancelled := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(uncancelled, end)
	}
	return uncancelled, func() {}
}
