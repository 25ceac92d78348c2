package activities

import (
	"context"
	"errors"

	"berth/internal/network"
)

// Agents are told what they have to know.
type Agents interface {
	// Publish publishes the notifications in order and returns the IDs of those that were published.
	Publish(ctx context.Context, all []network.Announcement) (told []int64, err error)
}

// announcementsAtOnce is how many announcements are read together.
const announcementsAtOnce = 100

// TellAgents brings out what agents shall be told of a network, oldest first, until nothing is left. World first, row
// second: agents may hear something twice, and never miss it.
func (a *Activities) TellAgents(ctx context.Context, key string) error {
	defer alive(ctx)()
	id, err := uuidOf(key)
	if err != nil {
		return err
	}
	for {
		due, err := a.Store.Announcements(ctx, id, announcementsAtOnce)
		if err != nil || len(due) == 0 {
			return verdict(err)
		}
		told, err := a.Agents.Publish(ctx, due)
		if err := errors.Join(a.Store.SettleAnnouncements(context.WithoutCancel(ctx), told), err); err != nil {
			return verdict(err)
		}
	}
}
