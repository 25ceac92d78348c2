package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// MirrorRun brings the controller and the rows together, or tells how they differ: it does one step after the other of
// the open run of its kind, and ends when there is none. How far a run is stands in its row, so that another process
// goes on where one died.
func MirrorRun(ctx workflow.Context, in contract.Input) error {
	f, err := newFace(ctx, contract.RunID(in.Key))
	if err != nil {
		return err
	}
	changed := nudged(ctx)
	for steps := drain(changed); ; steps++ {
		var p contract.RunProgress
		if err := workflow.ExecuteActivity(persevering(ctx, "step of the "+in.Key), do.StepRun, in.Key).Get(ctx, &p); err != nil {
			return err
		}
		if p.Idle && changed.Len() == 0 {
			return nil
		}
		if err := f.show(ctx, contract.Why{State: p.State, Sentence: p.Sentence, Waiting: p.Waiting}); err != nil {
			return err
		}
		if full(ctx, steps) {
			return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, in)
		}
		if p.Delay > 0 {
			if _, err := workflow.AwaitWithTimeout(ctx, p.Delay, func() bool { return changed.Len() > 0 }); err != nil {
				return err
			}
		}
		steps += drain(changed)
	}
}
