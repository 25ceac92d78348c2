package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// Pool adds one host to Nova's aggregate "freepool" or removes the host from it, as the row of the host
// requires. While Nova is unavailable, Pool retries.
func Pool(ctx workflow.Context, in contract.Input) error {
	return deliver(ctx, delivery{
		workflow: contract.Pool,
		id:       contract.PoolID(in.Key),
		in:       in,
		summary:  "update the aggregate freepool",
		activity: activities.SyncFreepoolHost,
		whyUndelivered: func(lastError string) contract.Why {
			return contract.Why{
				State:     stateUndelivered,
				Sentence:  "Nova's aggregate freepool is not updated for host " + in.Key + " yet: " + lastError,
				Waiting:   []contract.Waiting{{For: "cloud"}},
				LastError: lastError,
			}
		},
	})
}
