package activities

import (
	"context"
	"errors"

	"berth/internal/network"
)

// AgentPublisher publishes notifications to agents.
type AgentPublisher interface {
	// Publish publishes the notifications in order and returns the IDs of the published notifications.
	Publish(ctx context.Context, all []network.AgentNotification) (published []int64, err error)
}

// announcementBatch is the maximum number of notifications to agents that one query reads.
const announcementBatch = 100

// NotifyAgents publishes the recorded notifications of a network, oldest first, until no notification is left. NotifyAgents publishes a
// notification before it deletes the notification's row. A crash may therefore cause NotifyAgents to publish a notification twice, but
// never to lose a notification.
func (a *Activities) NotifyAgents(ctx context.Context, key string) error {
	defer startHeartbeat(ctx)()
	id, err := parseUUID(key)
	if err != nil {
		return err
	}
	for {
		due, err := a.Store.Network.Notifications(ctx, id, announcementBatch)
		if err != nil || len(due) == 0 {
			return classify(err)
		}
		published, err := a.publish(ctx, due)
		if err := errors.Join(a.Store.Network.MarkNotificationsSent(context.WithoutCancel(ctx), published), err); err != nil {
			return classify(err)
		}
	}
}

func (a *Activities) publish(ctx context.Context, due []network.AgentNotification) (published []int64, err error) {
	ctx, stop := ignoreCancellation(ctx)
	defer stop()
	return a.Agents.Publish(ctx, due)
}
