package activities

import (
	"context"
	"encoding/json"
	"time"

	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/odl"
)

// NoController is the mirror where no controller is configured: it takes every change and sends none.
type NoController struct{}

// Send accepts everything.
func (NoController) Send(context.Context, string, string, []byte) (odl.Answer, error) {
	return odl.Answer{Status: 204}, nil
}

// List shows that there is nothing.
func (NoController) List(context.Context, string, string, func(json.RawMessage) error) (odl.Answer, error) {
	return odl.Answer{Status: 404}, nil
}

// Rests never: nobody is asked.
func (NoController) Rests() (time.Duration, string) { return 0, "" }

// NoWebhook hears every message and tells nobody, where no webhook is configured.
type NoWebhook struct{}

// Send accepts everything.
func (NoWebhook) Send(context.Context, notify.Message) error { return nil }

// NoNova hears every event and tells nobody, where no Nova is configured.
type NoNova struct{}

// Send accepts everything.
func (NoNova) Send(_ context.Context, events []notify.Event) ([]int, error) {
	return make([]int, len(events)), nil
}

// NoAgents tells nobody, where agents are not spoken with over RabbitMQ.
type NoAgents struct{}

// Tell counts everything as told.
func (NoAgents) Tell(_ context.Context, all []network.Announcement) ([]int64, error) {
	told := make([]int64, len(all))
	for i, a := range all {
		told[i] = a.ID
	}
	return told, nil
}
