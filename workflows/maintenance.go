package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

const (
	// firstSweep is how far the first round looks back.
	firstSweep = 24 * time.Hour
	// sweepOverlap is what rounds look at twice, since Temporal lists a workflow a little after it has ended.
	sweepOverlap = 30 * time.Second
)

// Maintenance is one round of the sweep: rows that nobody looks after get their workflow back, a controller that lost its
// data is noticed, and so is a host that died. A schedule runs it; each round goes on where the last one left off.
func Maintenance(ctx workflow.Context, _ contract.Input) (contract.SweepResult, error) {
	last := contract.SweepResult{Until: workflow.Now(ctx).Add(-firstSweep)}
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &last); err != nil {
			return last, err
		}
	}
	until := workflow.Now(ctx)
	var swept contract.SweepResult
	err := workflow.ExecuteActivity(patient(ctx, "sweep"), do.Sweep, last.Until.Add(-sweepOverlap)).Get(ctx, &swept)
	if err != nil {
		return swept, err
	}
	swept.Until = until
	if err := workflow.ExecuteActivity(patient(ctx, "watch the controller"), do.WatchController).Get(ctx, nil); err != nil {
		return swept, err
	}
	return swept, workflow.ExecuteActivity(persevering(ctx, "watch the hosts of leases"), do.WatchHosts).Get(ctx, nil)
}
