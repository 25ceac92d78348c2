package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// AgentNotifications sends the recorded notifications of one network to the Neutron agents, in the order of
// recording. While RabbitMQ is unavailable, it retries. It ends when no notification of the network is
// unsent.
func AgentNotifications(ctx workflow.Context, in contract.Input) error {
	return deliver(ctx, delivery{
		workflow: contract.AgentNotifications,
		id:       contract.AgentNotificationsID(in.Key),
		in:       in,
		summary:  "notify agents",
		activity: activities.NotifyAgents,
		whyUndelivered: func(lastError string) contract.Why {
			return contract.Why{
				State:     stateUndelivered,
				Sentence:  "Notifications to the agents of network " + in.Key + " are not delivered yet: " + lastError,
				Waiting:   []contract.Waiting{{For: "rabbitmq"}},
				LastError: lastError,
			}
		},
	})
}
