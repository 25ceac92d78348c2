package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// firstSweepPeriod is how far back the first round searches for ended workflows.
const firstSweepPeriod = 24 * time.Hour

// Time limits of a round. The next round starts only after the round has ended, so each activity of a round
// is retried for a short time only; the next round tries it again.
const (
	// MaintenanceTimeout is the time after which Temporal ends a round, for example because no process has
	// the version of berth that has started the round. MaintenanceTimeout is longer than the times of all
	// activities together.
	MaintenanceTimeout = 30 * time.Minute
	// SweepRetryTime is the time for the sweep, and for the check of the controller.
	SweepRetryTime = 2 * time.Minute
	// HealRetryTime is the time for the healing of reservations.
	HealRetryTime = LongRunningTimeout
)

// Maintenance is the workflow that performs one round of the sweep. A Temporal schedule starts the workflow
// regularly. A round searches for the workflows that have ended since the last round although their row still
// exists, and restarts them. A round also deletes old rows, starts a full sync, an audit or a recovery if one
// is due, and heals reservations whose hosts are down. If one of these parts fails, the round continues with
// the next one, and its result has the failure.
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
	since := last.Until.Add(-activities.SweepOverlap)
	if !last.Unsearched.IsZero() {
		since = last.Unsearched
	}
	until := workflow.Now(ctx)
	var swept *contract.SweepResult
	var failures []string
	for _, part := range []struct {
		step, activity string
		options        workflow.Context
		args           []any
		result         any
	}{
		{
			step:     "The sweep restarts lost workflows and deletes old rows.",
			activity: activities.Sweep,
			options:  limitRetries(longRunning(ctx, "sweep"), SweepRetryTime),
			args:     []any{since},
			result:   &swept,
		},
		{
			step:     "The sweep checks the controller and starts runs that are due.",
			activity: activities.StartDueRuns,
			options:  limitRetries(remoteUnlimited(ctx, "check the controller"), SweepRetryTime),
		},
		{
			step:     "The sweep checks the hosts of leases.",
			activity: activities.HealReservations,
			options:  limitRetries(longRunning(ctx, "check the hosts of leases"), HealRetryTime),
		},
	} {
		status.setStep(part.step)
		err := workflow.ExecuteActivity(part.options, part.activity, part.args...).Get(ctx, part.result)
		if ctx.Err() != nil {
			return last, ctx.Err()
		}
		if err != nil {
			workflow.GetLogger(ctx).Warn("a part of the sweep failed", "activity", part.activity, "error", err)
			failures = append(failures, err.Error())
		}
	}
	result := contract.SweepResult{Until: last.Until, Unsearched: last.Unsearched}
	if swept != nil {
		result = *swept
		result.Until = until
	}
	result.Failures = append(result.Failures, failures...)
	return result, nil
}
