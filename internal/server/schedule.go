package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/payloadcodec"
	"berth/workflows"
)

// scheduleDefinition is what a version of berth defines about the Temporal Schedule of the sweep. A sweep
// restarts the workflow of each database row that needs a workflow but has none running in Temporal.
type scheduleDefinition struct {
	interval time.Duration // time between two sweeps
	overlap  enums.ScheduleOverlapPolicy
	// a sweep that Temporal could not start on time is started late by at most this duration
	catchUpWindow time.Duration
	timeout       time.Duration // Temporal ends a sweep that takes longer
	summary       string
	codec         payloadcodec.Codec // decrypts the recorded definition
}

// sweepSchedule is the definition in this version of berth.
var sweepSchedule = scheduleDefinition{
	interval:      time.Minute,
	overlap:       enums.SCHEDULE_OVERLAP_POLICY_SKIP,
	catchUpWindow: time.Minute,
	timeout:       workflows.MaintenanceTimeout,
	summary:       "restart the workflow of each row whose workflow was lost",
}

// sweep returns the definition of the Schedule with the keys of this process.
func (a *App) sweep() scheduleDefinition {
	d := sweepSchedule
	d.codec = a.codec
	return d
}

// memoDefinition is the key of the memo in which the Schedule's action records its definition. The record
// tells a change of the definition from a change that an operator has made.
const memoDefinition = "definition"

// digest identifies the definition. The digest contains the key that encrypts the Schedule's payloads, so
// that a new key encrypts them again, and an old key can be removed.
func (d scheduleDefinition) digest() string {
	text := fmt.Appendf(nil, "%s %s %s %s %s", d.interval, d.overlap, d.catchUpWindow, d.timeout, d.summary)
	if key := d.codec.EncryptsWith(); key != "" {
		text = fmt.Appendf(text, " %s", key)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

func (d scheduleDefinition) spec() client.ScheduleSpec {
	return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: d.interval}}}
}

func (d scheduleDefinition) action() *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{
		ID:                       contract.MaintenanceID(contract.KeySweep),
		Workflow:                 contract.Maintenance,
		TaskQueue:                contract.TaskQueue(contract.Maintenance),
		Args:                     []any{contract.Input{Key: contract.KeySweep}},
		WorkflowExecutionTimeout: d.timeout,
		Memo:                     map[string]any{memoDefinition: d.digest()},
		StaticSummary:            d.summary,
	}
}

// create creates the Schedule. If the Schedule already exists, create does not change it.
func (d scheduleDefinition) create(ctx context.Context, c client.Client) error {
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:            contract.MaintenanceID(contract.KeySweep),
		Spec:          d.spec(),
		Overlap:       d.overlap,
		CatchupWindow: d.catchUpWindow,
		Action:        d.action(),
	})
	if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("create the schedule of the sweep: %w", err)
	}
	return nil
}

// apply creates the Schedule, or changes a Schedule that another definition has made. A paused Schedule
// stays paused. If this definition has made the Schedule, apply does not change it, because an operator may
// have changed it since. If the Schedule is encrypted with a key that this process does not have, apply
// returns an error, so the process runs no workflows and activities whose payloads it could not decrypt.
func (d scheduleDefinition) apply(ctx context.Context, c client.Client) error {
	if err := d.create(ctx, c); err != nil {
		return err
	}
	handle := c.ScheduleClient().GetHandle(ctx, contract.MaintenanceID(contract.KeySweep))
	err := handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := in.Description.Schedule
			if d.recorded(schedule.Action) == d.digest() {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			slog.InfoContext(
				ctx, "changing the schedule of the sweep to the definition of this version",
				"interval", d.interval,
			)
			spec := d.spec()
			schedule.Spec, schedule.Action = &spec, d.action()
			schedule.Policy = &client.SchedulePolicies{Overlap: d.overlap, CatchupWindow: d.catchUpWindow}
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update the schedule of the sweep: %w", err)
	}
	return nil
}

// recorded returns the digest of the definition that has made the action of a Schedule, or "" if
// the action records none.
func (d scheduleDefinition) recorded(action client.ScheduleAction) string {
	workflow, ok := action.(*client.ScheduleWorkflowAction)
	if !ok {
		return ""
	}
	var digest string
	if payload, ok := workflow.Memo[memoDefinition].(*common.Payload); !ok ||
		d.codec.DataConverter().FromPayload(payload, &digest) != nil {
		return ""
	}
	return digest
}
