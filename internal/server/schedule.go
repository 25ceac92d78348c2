package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
)

// sweepInterval is the time between two sweeps. A sweep restarts the workflow of each database row that needs a workflow but has none
// running in Temporal.
const sweepInterval = time.Minute

// createSweepSchedule creates the Temporal Schedule of the sweep. If the Schedule already exists, createSweepSchedule does not change it,
// because an operator may have changed or paused the Schedule.
func createSweepSchedule(ctx context.Context, c client.Client) error {
	id := contract.MaintenanceID(contract.KeySweep)
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:            id,
		Spec:          client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: sweepInterval}}},
		Overlap:       enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: sweepInterval,
		Action: &client.ScheduleWorkflowAction{
			ID:            id,
			Workflow:      contract.Maintenance,
			TaskQueue:     contract.TaskQueue(contract.Maintenance),
			Args:          []any{contract.Input{Key: contract.KeySweep}},
			StaticSummary: "restart the workflow of each row whose workflow was lost",
		},
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("create the schedule of the sweep: %w", err)
	}
	return nil
}
