package activities

import (
	"context"
	"errors"

	"berth/internal/network"
)

// AgentPublisher publishes notifications to agents.
type AgentPublisher interface {
	// Publish publishes the notifications in order and returns the IDs of those that were published.
	Publish(ctx context.Context, all []network.AgentNotification) (published []int64, err error)
}

// announcementBatch is the maximum number of notifications that one query reads.
const announcementBatch = 100

// NotifyAgents publishes the recorded notifications of a network, oldest first, until none is left. A notification is
// published before its row is deleted, so that agents may receive it twice but never miss it.
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
		published, err := a.Agents.Publish(ctx, due)
		if err := errors.Join(a.Store.Network.MarkNotificationsSent(context.WithoutCancel(ctx), published), err); err != nil {
			return classify(err)
		}
	}
}
