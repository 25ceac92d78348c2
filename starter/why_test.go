package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/starter/cli"
)

func TestWhy_AsksWorkflowsWithoutARow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, port := uuid.NewString(), uuid.NewString()
	for word, c := range map[string]struct{ workflow, startsWhen string }{
		"pool/cmp-1":           {contract.PoolID("cmp-1"), "It starts when the host must be added to Nova's aggregate freepool or removed from it."},
		"webhook/" + id:        {contract.WebhookID(id), "It starts when the lease changes, or when nothing blocks the port or trunk any more, if a webhook is configured."},
		"webhook/port/" + port: {contract.WebhookID(port), "It starts when the lease changes, or when nothing blocks the port or trunk any more, if a webhook is configured."},
		"announce/" + id:       {contract.AnnounceID(id), "It starts when agents must be notified of a change of the network."},
		"odl/full-sync":        {contract.RunID(contract.KeyFullSync), "`starter odl sync` starts it"},
		"odl/recovery":         {contract.RunID(contract.KeyRecovery), "`starter odl recover` starts it"},
		"odl/audit":            {contract.RunID(contract.KeyAudit), "`starter odl audit` starts it"},
		"odl/repair":           {contract.RunID(contract.KeyRepair), "`starter odl repair` starts it"},
		"maintenance/sweep-2030-01-31T10:00:00Z": {contract.MaintenanceID("sweep-2030-01-31T10:00:00Z"),
			"The schedule maintenance/sweep starts the rounds of the sweep."},
	} {
		t.Run(word, func(t *testing.T) {
			h.expect(t, cli.ExitNotFound, "workflow "+c.workflow+" is not found; nothing is running\n  "+c.startsWhen, "why", word)

			h.startWorkflow(t, c.workflow, contract.PortQueue)
			h.expect(t, 0, c.workflow+": waiting for DHCP and L2 (from its workflow)", "why", word)

			if err := h.namespace.Client.TerminateWorkflow(t.Context(), c.workflow, "", "end of the test"); err != nil {
				t.Fatal(err)
			}
			h.expect(t, 0, c.workflow+": The workflow has ended; nothing is running. "+c.startsWhen, "why", word)
		})
	}
	for word, want := range map[string]string{
		"odl/truth":         `"odl/truth" is none of odl/audit, odl/full-sync, odl/recovery, odl/repair`,
		"maintenance/truth": `"maintenance/truth" is neither maintenance/sweep nor one of its rounds`,
		"ship/truth":        `"ship/truth" is none of port/NAME, lease/NAME, journal/SEQ`,
	} {
		t.Run(word, func(t *testing.T) { h.expect(t, cli.ExitUsage, want, "why", word) })
	}
}

func TestWhy_ExplainsTheSweepFromItsSchedule(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	sweep := contract.MaintenanceID(contract.KeySweep)
	h.expect(t, cli.ExitNotFound, "the schedule maintenance/sweep is not found; nothing is running", "why", sweep)

	// The action starts the harness's stub of a workflow, which runs until the test ends.
	schedule, err := h.namespace.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: sweep, Paused: true,
		Action: &client.ScheduleWorkflowAction{ID: sweep, Workflow: contract.Port, TaskQueue: contract.PortQueue, Args: []any{contract.Input{}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.expect(t, 0, sweep+": No round of the sweep is running. The schedule is paused", "why", sweep)

	if err := schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = ": waiting for DHCP and L2 (from its workflow)"
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, output := h.run(t, "why", sweep)
		if code == 0 && strings.Contains(output, sweep+"-") && strings.Contains(output, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("run starter why %s after the trigger of the schedule: got exit code %d and the output\n%s\nwant exit code 0 and %q", sweep, code, output, want)
		}
	}
}
