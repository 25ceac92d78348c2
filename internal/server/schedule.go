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

// sweepEvery is how soon a row whose workflow was lost gets it back.
const sweepEvery = time.Minute

// schedule makes sure that the sweep runs. Who changed or paused the schedule keeps what he made of it.
func schedule(ctx context.Context, c client.Client) error {
	id := contract.MaintenanceID(contract.KeySweep)
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:            id,
		Spec:          client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: sweepEvery}}},
		Overlap:       enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: sweepEvery,
		Action: &client.ScheduleWorkflowAction{
			ID:            id,
			Workflow:      contract.Maintenance,
			TaskQueue:     contract.TaskQueue(contract.Maintenance),
			Args:          []any{contract.Input{Key: contract.KeySweep}},
			StaticSummary: "rows that nobody looks after get their workflow back",
		},
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("schedule the sweep: %w", err)
	}
	return nil
}
