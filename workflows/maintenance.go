package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

const (
	// firstSweepPeriod is how far back the first round searches for ended workflows.
	firstSweepPeriod = 24 * time.Hour
	// sweepOverlap is the length of the period that two consecutive rounds of the sweep both search. The
	// rounds overlap because an ended workflow appears in Temporal's list only a short time after its end.
	sweepOverlap = 30 * time.Second
)

// Maintenance is the workflow that performs one round of the sweep. A Temporal schedule starts the workflow
// regularly. A round searches for the workflows that have ended since the last round although their row still
// exists, and restarts them. A round also deletes old rows, starts a full sync, an audit or a recovery if one
// is due, and heals reservations whose hosts are down.
func Maintenance(ctx workflow.Context, in contract.Input) (contract.SweepResult, error) {
	status, err := newStatusReporter(ctx, contract.MaintenanceID(in.Key))
	if err != nil {
		return contract.SweepResult{}, err
	}
	last := contract.SweepResult{Until: workflow.Now(ctx).Add(-firstSweepPeriod)}
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &last); err != nil {
			return last, err
		}
	}
	until := workflow.Now(ctx)
	var result contract.SweepResult
	status.setStep("The sweep restarts lost workflows and deletes old rows.")
	err = workflow.ExecuteActivity(remoteUnlimited(ctx, "sweep"), activities.Sweep, last.Until.Add(-sweepOverlap)).
		Get(ctx, &result)
	if err != nil {
		return result, err
	}
	result.Until = until
	status.setStep("The sweep checks the controller and starts runs that are due.")
	if err := workflow.ExecuteActivity(remoteUnlimited(ctx, "check the controller"), activities.StartDueRuns).Get(ctx, nil); err != nil {
		return result, err
	}
	status.setStep("The sweep checks the hosts of leases.")
	return result, workflow.ExecuteActivity(longRunning(ctx, "check the hosts of leases"), activities.HealReservations).
		Get(ctx, nil)
}
