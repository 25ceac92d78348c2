package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// Pool brings one host into the cloud's pool of those that can be leased, or out of it: once at once, and then for as long
// as the cloud is away.
func Pool(ctx workflow.Context, in contract.Input) error {
	return bringOut(ctx, outlet{workflow: contract.Pool, id: contract.PoolID(in.Key), in: in, summary: "tell the cloud", activity: do.PoolHost,
		untold: func(err error) contract.Why {
			return contract.Why{State: "untold", Sentence: "The cloud has not heard yet whether host " + in.Key + " can be leased: " + err.Error(),
				Waiting: []contract.Waiting{{For: "cloud"}}, LastError: err.Error()}
		}})
}
