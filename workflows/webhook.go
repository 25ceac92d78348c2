package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// Webhook brings out what others are told about one lease, in order, until nothing is left: once at once, and then for
// as long as those who listen are away.
func Webhook(ctx workflow.Context, in contract.Input) error {
	return bringOut(ctx, outlet{workflow: contract.Webhook, id: contract.WebhookID(in.Key), in: in, summary: "tell", activity: do.TellLease,
		untold: func(err error) contract.Why {
			return contract.Why{State: "untold", Sentence: "What happened to lease " + in.Key + " is not told yet: " + err.Error(),
				Waiting: []contract.Waiting{{For: "webhook"}}, LastError: err.Error()}
		}})
}

// outlet is how what is recorded for others comes out.
type outlet struct {
	workflow string
	id       string // of the workflow
	in       contract.Input
	summary  string
	activity any // tells all there is
	untold   func(error) contract.Why
}

func bringOut(ctx workflow.Context, o outlet) error {
	f, err := newFace(ctx, o.id)
	if err != nil {
		return err
	}
	changed := nudged(ctx)
	for handled := 0; ; {
		handled += drain(changed)
		err := workflow.ExecuteLocalActivity(once(ctx, o.summary), o.activity, o.in.Key).Get(ctx, nil)
		if err != nil {
			if err := f.show(ctx, o.untold(err)); err != nil {
				return err
			}
			err = workflow.ExecuteActivity(patient(ctx, o.summary), o.activity, o.in.Key).Get(ctx, nil)
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
			return workflow.NewContinueAsNewError(ctx, o.workflow, o.in)
		}
	}
}
