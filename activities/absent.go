package activities

import (
	"context"

	"berth/internal/network"
	"berth/internal/notify"
)

// NoWebhook hears every message and tells nobody, where no webhook is configured.
type NoWebhook struct{}

// Send accepts everything.
func (NoWebhook) Send(context.Context, notify.Notification) error { return nil }

// NoNova hears every event and tells nobody, where no Nova is configured.
type NoNova struct{}

// Send accepts everything.
func (NoNova) Send(_ context.Context, events []notify.Event) ([]int, error) {
	return make([]int, len(events)), nil
}

// NoAgents tells nobody, where agents are not spoken with over RabbitMQ.
type NoAgents struct{}

// Tell counts everything as told.
func (NoAgents) Publish(_ context.Context, all []network.Announcement) ([]int64, error) {
	told := make([]int64, len(all))
	for i, a := range all {
		told[i] = a.ID
	}
	return told, nil
}
