package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// MirrorRun executes the open run of one kind (full sync, recovery, audit or repair) step by step. MirrorRun
// ends when no run of this kind is open. The row of the run stores the progress, so another process can
// continue the run after a crash. If many nudges (signals `changed`) arrive while a step is retried,
// MirrorRun interrupts the step and continues as new.
func MirrorRun(ctx workflow.Context, in contract.Input) error {
	status, err := newStatusReporter(ctx, contract.RunID(in.Key))
	if err != nil {
		return err
	}
	changed := changedSignals(ctx)
	for steps := discardAll(changed); ; steps++ {
		var p contract.RunProgress
		full := func() bool { return deliveryIsFull(ctx, steps+changed.Len()) }
		interrupted, err := executeUntilFull(longRunning(ctx, "step of the "+in.Key),
			full, &p, activities.StepRun, in.Key)
		if interrupted && ctx.Err() == nil {
			return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, in)
		}
		if err != nil {
			return err
		}
		if p.Idle && changed.Len() == 0 {
			return nil
		}
		if err := status.report(ctx, contract.Why{State: p.State, Sentence: p.Sentence, Waiting: p.Waiting}, nil); err != nil {
			return err
		}
		if shouldContinueAsNew(ctx, steps) {
			return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, in)
		}
		if p.Delay > 0 {
			if _, err := workflow.AwaitWithTimeout(ctx, p.Delay, func() bool { return changed.Len() > 0 }); err != nil {
				return err
			}
		}
		steps += discardAll(changed)
	}
}
