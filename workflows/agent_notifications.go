package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/network"
)

// AgentNotifications sends the recorded notifications of one network, or of one queue of
// network.NotificationQueue, to the Neutron agents, in the order of recording. While RabbitMQ is unavailable,
// it retries. It ends when no notification of the network or queue is unsent.
func AgentNotifications(ctx workflow.Context, in contract.Input) error {
	project, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(projectAttribute)
	subject := network.NotificationSubject(in.Key, project)
	return deliver(ctx, delivery{
		workflow: contract.AgentNotifications,
		id:       contract.AgentNotificationsID(in.Key),
		in:       in,
		summary:  "notify agents",
		activity: activities.NotifyAgents,
		whyUndelivered: func(lastError string) contract.Why {
			return contract.Why{
				State:     stateUndelivered,
				Sentence:  "Notifications to agents about " + subject + " are not delivered yet: " + lastError,
				Waiting:   []contract.Waiting{{For: "rabbitmq"}},
				LastError: lastError,
			}
		},
	})
}
