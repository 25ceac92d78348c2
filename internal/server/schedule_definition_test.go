package server

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/payloadcodec"
)

func TestSchedule_FollowsItsDefinitionAndKeepsChangesOfOperators(t *testing.T) {
	t.Parallel()
	c := temporaltest.New(t).Client
	handle := c.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	apply := func(d scheduleDefinition) {
		t.Helper()
		if err := d.apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, interval, catchUp, timeout time.Duration, overlap enums.ScheduleOverlapPolicy, paused bool) {
		t.Helper()
		got, err := handle.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := got.Schedule
		limit := s.Action.(*client.ScheduleWorkflowAction).WorkflowExecutionTimeout
		if s.Spec.Intervals[0].Every != interval || s.Policy.CatchupWindow != catchUp || limit != timeout ||
			s.Policy.Overlap != overlap ||
			s.State.Paused != paused {
			t.Errorf(
				"%s: got the intervals %v, the policy %+v, the timeout %s, paused %t; want the interval %s, the catch-up window %s, the timeout %s, the overlap %s, paused %t",
				when, s.Spec.Intervals, *s.Policy, limit, s.State.Paused, interval, catchUp, timeout, overlap, paused,
			)
		}
	}
	const skip, buffer = enums.SCHEDULE_OVERLAP_POLICY_SKIP, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE

	apply(sweepSchedule)
	expect("created", time.Minute, time.Minute, 30*time.Minute, skip, false)

	if err := handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "by an operator"}); err != nil {
		t.Fatal(err)
	}
	setInterval := client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			in.Description.Schedule.Spec.Intervals[0].Every = time.Hour
			return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	}
	if err := handle.Update(t.Context(), setInterval); err != nil {
		t.Fatal(err)
	}
	apply(sweepSchedule)
	expect("changed by an operator, then a restart of the same version", time.Hour, time.Minute, 30*time.Minute, skip, true)

	next := scheduleDefinition{
		interval:      2 * time.Minute,
		overlap:       buffer,
		catchUpWindow: 3 * time.Minute,
		timeout:       time.Hour,
		summary:       "the next version",
	}
	apply(next)
	expect("next version", 2*time.Minute, 3*time.Minute, time.Hour, buffer, true)

	apply(sweepSchedule)
	expect("previous version again", time.Minute, time.Minute, 30*time.Minute, skip, true)
}

// TestSchedule_WithoutRecordedDefinitionIsUpdated starts with the Schedule of a version that did not record
// its definition.
func TestSchedule_WithoutRecordedDefinitionIsUpdated(t *testing.T) {
	t.Parallel()
	c := temporaltest.New(t).Client
	action := sweepSchedule.action()
	action.Memo = nil
	id := contract.MaintenanceID(contract.KeySweep)
	_, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID:     id,
		Action: action,
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}},
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := sweepSchedule.apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}

	got, err := c.ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
	if err != nil || got.Schedule.Spec.Intervals[0].Every != sweepSchedule.interval {
		t.Errorf("schedule after the update: got %+v, error %v; want the interval %s",
			got, err, sweepSchedule.interval)
	}
}

// The Schedule is the first encrypted data that a process reads, and the only data that outlives every
// workflow.
func TestSchedule_IsEncryptedAgainWithEachNewKey(t *testing.T) {
	t.Parallel()
	n := temporaltest.New(t)
	apply := func(keys ...byte) error {
		t.Helper()
		var all [][]byte
		for _, b := range keys {
			all = append(all, bytes.Repeat([]byte{b}, 32))
		}
		codec, err := payloadcodec.New(all, true)
		if err != nil {
			t.Fatal(err)
		}
		o := client.Options{HostPort: n.Address, Namespace: n.Name}
		codec.Apply(&o)
		c, err := temporaltest.Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		d := sweepSchedule
		d.codec = codec
		return d.apply(t.Context(), c)
	}
	for _, keys := range [][]byte{{1}, {2, 1}, {2}} {
		if err := apply(keys...); err != nil {
			t.Errorf("apply the definition with the keys %v: %v", keys, err)
		}
	}
	for _, keys := range [][]byte{{}, {1}} {
		if err := apply(keys...); err == nil || !strings.Contains(err.Error(), payloadcodec.Setting) {
			t.Errorf("apply the definition with the keys %v: got error %v, want one that names the setting", keys, err)
		}
	}
}
