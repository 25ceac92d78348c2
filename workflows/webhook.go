package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// Webhook sends the recorded notifications of one lease, port or trunk to the webhook receiver, in the order
// of recording. While the webhook receiver is unavailable, Webhook retries. Webhook ends when no notification
// of the object is unsent.
func Webhook(ctx workflow.Context, in contract.Input) error {
	return deliver(ctx, delivery{
		workflow: contract.Webhook,
		id:       contract.WebhookID(in.Key),
		in:       in,
		summary:  "notify the webhook",
		activity: activities.NotifyWebhook,
		whyUndelivered: func(lastError string) contract.Why {
			return contract.Why{
				State:     stateUndelivered,
				Sentence:  "Notifications about " + in.Key + " are not delivered to the webhook yet: " + lastError,
				Waiting:   []contract.Waiting{{For: "webhook"}},
				LastError: lastError,
			}
		},
	})
}
