package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/starter/cli"
)

func TestWhy_AsksWorkflowsWithoutARow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, port, derived := uuid.NewString(), uuid.NewString(), uuid.NewSHA1(uuid.NameSpaceURL, []byte("tunnels")).String()
	for word, c := range map[string]struct{ workflow, startsWhen string }{
		"pool/cmp-1":                {contract.PoolID("cmp-1"), "It starts when the host must be added to Nova's aggregate freepool or removed from it."},
		"webhook/" + id:             {contract.WebhookID(id), "It starts when the lease changes, or when nothing blocks the port or trunk any more, if a webhook is configured."},
		"webhook/port/" + port:      {contract.WebhookID(port), "It starts when the lease changes, or when nothing blocks the port or trunk any more, if a webhook is configured."},
		"agent-notifications/" + id: {contract.AgentNotificationsID(id), "It starts when agents must be notified of a change of the network."},
		"agent-notifications/" + derived: {contract.AgentNotificationsID(derived),
			"It starts when agents must be notified of a change of the security groups of a project, of tunnel endpoints, of MACs of distributed routers, or of DHCP agents."},
		"odl/full-sync": {contract.RunID(contract.KeyFullSync), "`starter odl sync` starts it"},
		"odl/recovery":  {contract.RunID(contract.KeyRecovery), "`starter odl recover` starts it"},
		"odl/audit":     {contract.RunID(contract.KeyAudit), "`starter odl audit` starts it"},
		"odl/repair":    {contract.RunID(contract.KeyRepair), "`starter odl repair` starts it"},
		"maintenance/sweep-2030-01-31T10:00:00Z": {contract.MaintenanceID("sweep-2030-01-31T10:00:00Z"),
			"The schedule maintenance/sweep starts the rounds of the sweep."},
	} {
		t.Run(word, func(t *testing.T) {
			h.expect(
				t, cli.ExitNotFound,
				"workflow "+c.workflow+" is not found; nothing is running\n  "+c.startsWhen,
				"why", word,
			)

			h.startWorkflow(t, c.workflow, contract.PortQueue)
			h.expect(t, 0, c.workflow+": waiting for DHCP and L2 (from its workflow)", "why", word)

			if err := h.namespace.Client.TerminateWorkflow(t.Context(), c.workflow, "", "end of the test"); err != nil {
				t.Fatal(err)
			}
			h.expect(t, 0,
				c.workflow+": The workflow has ended; nothing is running. "+c.startsWhen, "why", word)
		})
	}
	for word, want := range map[string]string{
		"odl/truth":         `"odl/truth" is none of odl/audit, odl/full-sync, odl/recovery, odl/repair`,
		"maintenance/truth": `"maintenance/truth" is neither maintenance/sweep nor one of its rounds`,
		"ship/truth":        `"ship/truth" is none of port/NAME, trunk/NAME, lease/NAME, journal/SEQ`,
	} {
		t.Run(word, func(t *testing.T) { h.expect(t, cli.ExitUsage, want, "why", word) })
	}
}

func TestWhy_ExplainsATrunkFromTheAPI(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.stub.add("trunks", cli.Object{
		"name":   "t-1",
		"status": "BUILD",
		"berth:why": cli.Object{
			"sentence": "BUILD: its subport x is DOWN; it waits for QOS since 2030-01-31T10:00:00Z",
			"waiting":  []cli.Object{{"for": "QOS", "since": "2030-01-31T10:00:00Z"}},
		},
	})["id"].(string)
	h.expect(t, 0,
		"trunk/"+id+": BUILD: its subport x is DOWN; it waits for QOS since 2030-01-31T10:00:00Z (from the API; a trunk has no workflow)",
		"why", "trunk/t-1")
	h.expect(t, 0, "QOS", "why", "trunk/"+id, "-o", "jsonpath=$.waiting[*].for")
	h.expect(t, cli.ExitNotFound, "no trunk is named \"t-2\"\n  `starter trunk list` lists all.", "why", "trunk/t-2")
}

func TestWhy_ExplainsTheSweepFromItsSchedule(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	sweep := contract.MaintenanceID(contract.KeySweep)
	h.expect(t, cli.ExitNotFound,
		"the schedule maintenance/sweep is not found; nothing is running", "why", sweep)

	// The action starts the harness's stub of a workflow, which runs until the test ends.
	schedule, err := h.namespace.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID:     sweep,
		Paused: true,
		Action: &client.ScheduleWorkflowAction{
			ID:        sweep,
			Workflow:  contract.Port,
			TaskQueue: contract.PortQueue,
			Args:      []any{contract.Input{}},
		},
	})
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
			t.Fatalf(
				"run starter why %s after the trigger of the schedule: got exit code %d and the output\n%s\nwant exit code 0 and %q",
				sweep, code, output, want,
			)
		}
	}
}

// retryingWorkflow is a replacement of the workflow JournalEntry that knows the failure of its first attempt
// only, while Temporal retries the activity MirrorEntry.
func retryingWorkflow(ctx workflow.Context, _ contract.Input) error {
	why := contract.Why{
		Object:    "journal/7",
		State:     "pending",
		Sentence:  "will be sent again after attempt 1: 503",
		LastError: "503",
	}
	if err := workflow.SetQueryHandler(ctx, contract.QueryWhy, func() (contract.Why, error) { return why, nil }); err != nil {
		return err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
	return workflow.ExecuteActivity(ctx, "MirrorEntry").Get(ctx, nil)
}

func TestWhy_ShowsTheLatestAttemptOfAnActivity(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	w := worker.New(h.namespace.Client, "retries", worker.Options{})
	w.RegisterWorkflowWithOptions(retryingWorkflow, workflow.RegisterOptions{Name: contract.JournalEntry})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		attempt, delay := activity.GetInfo(ctx).Attempt, time.Millisecond
		if attempt == 3 {
			delay = time.Hour
		}
		return temporal.NewApplicationErrorWithOptions(fmt.Sprint("refused ", attempt), "test",
			temporal.ApplicationErrorOptions{NextRetryDelay: delay})
	}, activity.RegisterOptions{Name: "MirrorEntry"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	h.stub.add("entries", cli.Object{
		"seq":         7,
		"state":       "pending",
		"operation":   "create",
		"object_type": "network",
		"name":        "blue",
		"last_error":  "refused 3",
		"berth:why":   cli.Object{"sentence": "will be sent again after attempt 3: refused 3"},
	})
	h.startWorkflowOf(t, contract.JournalEntry, contract.JournalID("7"), "retries")
	for failed := false; !failed; time.Sleep(20 * time.Millisecond) { // ends with the test at the latest
		d, err := h.namespace.Client.DescribeWorkflowExecution(t.Context(), contract.JournalID("7"), "")
		if err != nil {
			t.Fatal(err)
		}
		failed = len(d.PendingActivities) == 1 && d.PendingActivities[0].Attempt == 4
	}

	code, output := h.run(t, "why", "journal/7")

	want := []string{
		"journal/7: Entry 7 (create network blue) is pending: will be sent again after attempt 3: refused 3. (from its workflow)",
		"last error: refused 3",
		"MirrorEntry: 3 attempts have failed, the next one begins at ",
		"; the last failure is: refused 3",
	}
	for _, text := range want {
		if code != 0 || !strings.Contains(output, text) {
			t.Errorf("starter why journal/7: got exit code %d and\n%s\nwant %q", code, output, text)
		}
	}
	h.expect(t, 0, `"failed": 3`, "why", "journal/7", "-o", "json")
}
