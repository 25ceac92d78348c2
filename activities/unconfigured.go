package activities

import (
	"context"
	"encoding/json"
	"time"

	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/odl"
)

// NoController replaces the OpenDaylight controller if no controller is configured. NoController accepts
// every request and stores nothing, so only the journal records the changes.
type NoController struct{}

// Send returns 204.
func (NoController) Send(context.Context, odl.Request) (odl.Response, error) {
	return odl.Response{Status: 204}, nil
}

// List returns 404.
func (NoController) List(context.Context, string, string, func(json.RawMessage) error) (odl.Response, error) {
	return odl.Response{Status: 404}, nil
}

// BreakerWait returns 0, because no request leaves the process.
func (NoController) BreakerWait() (time.Duration, string) { return 0, "" }

// Readable returns false, because no objects are stored.
func (NoController) Readable() bool { return false }

// NoWebhook replaces the webhook if none is configured.
type NoWebhook struct{}

// Send drops the notification.
func (NoWebhook) Send(context.Context, notify.Notification) error { return nil }

// NoNova replaces Nova if Nova is not configured.
type NoNova struct{}

// Send drops the events.
func (NoNova) Send(_ context.Context, events []notify.Event) ([]int, error) {
	return make([]int, len(events)), nil
}

// NoAgents replaces RabbitMQ if RabbitMQ is not configured.
type NoAgents struct{}

// Publish drops all notifications and returns their IDs, as if it had published them.
func (NoAgents) Publish(_ context.Context, all []network.AgentNotification) ([]int64, error) {
	published := make([]int64, len(all))
	for i, a := range all {
		published[i] = a.ID
	}
	return published, nil
}
