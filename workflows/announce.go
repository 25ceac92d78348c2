package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// Announce brings out what agents are told about one network, in order, until nothing is left: once at once, and then for
// as long as their broker is away.
func Announce(ctx workflow.Context, in contract.Input) error {
	return bringOut(ctx, outlet{workflow: contract.Announce, id: contract.AnnounceID(in.Key), in: in, summary: "tell agents", activity: do.TellAgents,
		untold: func(err error) contract.Why {
			return contract.Why{State: "untold", Sentence: "Agents are not told yet what became of network " + in.Key + ": " + err.Error(),
				Waiting: []contract.Waiting{{For: "rabbitmq"}}, LastError: err.Error()}
		}})
}
