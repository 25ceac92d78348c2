package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// Webhook brings out what others are told about one lease, in order, until nothing is left: once at once, and then for
// as long as those who listen are away.
func Webhook(ctx workflow.Context, in contract.Input) error {
	f, err := newFace(ctx, contract.WebhookID(in.Key))
	if err != nil {
		return err
	}
	changed := nudged(ctx)
	for handled := 0; ; {
		handled += drain(changed)
		err := workflow.ExecuteLocalActivity(once(ctx, "tell"), do.TellLease, in.Key).Get(ctx, nil)
		if err != nil {
			if err := f.show(ctx, untold(in.Key, err)); err != nil {
				return err
			}
			err = workflow.ExecuteActivity(patient(ctx, "tell"), do.TellLease, in.Key).Get(ctx, nil)
		}
		if err != nil {
			if err := workflow.Sleep(ctx, longPause); err != nil {
				return err
			}
			continue
		}
		switch {
		case changed.Len() == 0:
			return nil
		case full(ctx, handled):
			return workflow.NewContinueAsNewError(ctx, contract.Webhook, in)
		}
	}
}

func untold(key string, err error) contract.Why {
	return contract.Why{State: "untold", Sentence: "What happened to lease " + key + " is not told yet: " + err.Error(),
		Waiting: []contract.Waiting{{For: "webhook"}}, LastError: err.Error()}
}
