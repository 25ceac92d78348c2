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
	return s.sendNovaEvents(ctx, port, func(after int64) ([]network.NovaEvent, error) {
		return s.Recorded.NovaEvents(ctx, port, after)
	})
}

// sendNovaEvents sends the events of a port page by page, each page with one call. The function `next`
// returns the page of the events that come after an ID. A page that is not full is the last one: the port's
// workflow, or the next search of a Direct, finds the events that are recorded later.
func (s Sender) sendNovaEvents(
	ctx context.Context,
	port uuid.UUID,
	next func(after int64) ([]network.NovaEvent, error),
) error {
	var undelivered []network.NovaEvent
	for after, full := int64(0), true; full; {
		page, err := next(after)
		if err != nil {
			return err
		}
		full = len(page) == notificationstore.MaxNovaEvents
		if len(page) == 0 {
			break
		}
		if undelivered, err = s.sendNovaPage(ctx, port, undelivered, page); err != nil {
			return err
		}
		after = page[len(page)-1].ID
	}
	if len(undelivered) == 0 {
		return nil
	}
	return &UnknownServerError{Server: undelivered[0].Server, Age: undelivered[0].Age}
}

// unknownServer is Nova's code for an event about a server that Nova does not know.
const unknownServer = 404

// sendNovaPage sends a page of the events of a port, and deletes the events that are delivered. It returns
// those that must be sent again. The events `earlier` of earlier pages must be sent again, too, unless an
// event of this page follows that makes them useless.
func (s Sender) sendNovaPage(
	ctx context.Context,
	port uuid.UUID,
	earlier, page []network.NovaEvent,
) (undelivered []network.NovaEvent, err error) {
	events := make([]notify.Event, len(page))
	for i, e := range page {
		if e.Claimed {
			return nil, ErrClaimed
		}
		events[i] = notify.Event{
			Server:  e.Server,
			Name:    e.Name,
			Status:  e.Status,
			Tag:     e.Tag,
			Project: e.Project,
		}
	}
	ctx, stop := IgnoreCancellation(ctx)
	defer stop()
	codes, err := s.Nova.Send(ctx, events)
	if errors.Is(err, notify.ErrRejected) { // no retry can fix it, and the next events must not wait for it
		slog.ErrorContext(ctx, "Nova rejected events permanently; they are dropped",
			"port", port, "events", len(events), "first", events[0], "error", err) // a port may have many
		codes, err = make([]int, len(events)), nil
	}
	if err != nil {
		return nil, err
	}
	all := slices.Concat(earlier, page)
	refused := slices.Repeat([]int{unknownServer}, len(earlier))
	undelivered = network.NovaEventsToResend(all, slices.Concat(refused, codes))
	var delivered []int64
	for _, e := range all {
		if !slices.ContainsFunc(undelivered, func(u network.NovaEvent) bool { return u.ID == e.ID }) {
			delivered = append(delivered, e.ID)
		}
	}
	return undelivered, s.Recorded.DeleteNovaEvents(ctx, delivered)
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
