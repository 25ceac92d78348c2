package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/starter/cli"
)

// portWorkflow is a simple replacement of the workflow Port, with the same signals, updates and queries.
// portWorkflow waits for the reports of the entities DHCP and L2.
func portWorkflow(ctx workflow.Context, _ contract.Input) error {
	remaining := []string{"DHCP", "L2"}
	since := workflow.Now(ctx)
	complete := func(r contract.Report) {
		switch {
		// this replacement treats a report with revision 1 as a report for an earlier binding
		case r.Revision == 1:
			return
		case r.Event == "begun" || r.Event == "lost":
			if !slices.Contains(remaining, r.Entity) {
				remaining = append(remaining, r.Entity)
			}
			return
		}
		remaining = slices.DeleteFunc(remaining,
			func(e string) bool { return e == r.Entity && r.Host == "cmp-1" })
	}
	if err := workflow.SetQueryHandler(ctx, contract.QueryWhy, func() (contract.Why, error) {
		w := contract.Why{Object: workflow.GetInfo(ctx).WorkflowExecution.ID, State: "DOWN", Sentence: "waiting for " + strings.Join(remaining, " and ")}
		for _, e := range remaining {
			w.Waiting = append(w.Waiting, contract.Waiting{For: e, Since: &since})
		}
		return w, nil
	}); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateProvisioningComplete,
		func(ctx workflow.Context, r contract.Report) (contract.ReportResult, error) {
			complete(r)
			return contract.ReportResult{Status: "DOWN", Remaining: slices.Clone(remaining)}, nil
		}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, r contract.Report) error {
			if r.Entity == "NONSENSE" {
				return sdk.NewApplicationError("the port has no block NONSENSE", "report")
			}
			return nil
		}}); err != nil {
		return err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var r contract.Report
			workflow.GetSignalChannel(ctx, contract.SignalProvisioningComplete).Receive(ctx, &r)
			complete(r)
		}
	})
	return workflow.Await(ctx, func() bool { return len(remaining) == 0 })
}

// harness runs command lines with a stub of the API and a namespace of a real Temporal server.
type harness struct {
	namespace temporaltest.Namespace
	environ   []string
	stub      *apiStub
	portID    string // port web-1, whose workflow runs
	unstarted string // ID of the port with the name "unstarted", which has no workflow yet
}

func newHarness(t *testing.T) harness {
	t.Helper()
	n := temporaltest.New(t)
	for _, queue := range contract.TaskQueues {
		w := worker.New(n.Client, queue, worker.Options{DeadlockDetectionTimeout: time.Hour})
		w.RegisterWorkflowWithOptions(portWorkflow, workflow.RegisterOptions{Name: contract.Port})
		w.RegisterActivity(func() error { return nil })
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	s, url := newAPIStub(t)
	port := s.add("ports",
		cli.Object{"name": "web-1", "berth:why": cli.Object{"sentence": "explanation of the API"}})
	id := port["id"].(string)
	h := harness{
		n,
		[]string{
			"BERTH_DATA=" + t.TempDir(),
			"BERTH_URL=" + url,
			"TEMPORAL_ADDRESS=" + n.Address,
			"TEMPORAL_NAMESPACE=" + n.Name,
		},
		s,
		id,
		s.add("ports", cli.Object{"name": "unstarted"})["id"].(string),
	}
	h.startWorkflow(t, contract.PortID(id), contract.PortQueue)
	return h
}

// awaitPollers waits until the server has got a poll of each worker of the harness.
func (h harness) awaitPollers(t *testing.T) {
	t.Helper()
	for _, queue := range contract.TaskQueues {
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
				q, err := h.namespace.Client.DescribeTaskQueue(t.Context(), queue, kind)
				if err != nil || time.Now().After(deadline) {
					t.Fatalf("wait until a worker polls %s (%s): got error %v", queue, kind, err)
				}
				if len(q.Pollers) > 0 {
					break
				}
			}
		}
	}
}

// startWorkflow starts a portWorkflow with the given workflow ID.
func (h harness) startWorkflow(t *testing.T, id, queue string) {
	t.Helper()
	h.startWorkflowOf(t, contract.Port, id, queue)
}

// startWorkflowOf starts a workflow of a type.
func (h harness) startWorkflowOf(t *testing.T, typ, id, queue string) {
	t.Helper()
	options := client.StartWorkflowOptions{ID: id, TaskQueue: queue}
	if _, err := h.namespace.Client.ExecuteWorkflow(t.Context(), options, typ, contract.Input{Key: id}); err != nil {
		t.Error(err)
	}
}

// run runs a command line of starter, and returns the exit code and the output of the command.
func (h harness) run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	patient := &cli.Session{Dial: temporaltest.Dial, TimeoutFactor: 1000}
	err := runIn(t.Context(), patient, args, h.environ, &out, &out)
	if err != nil {
		cli.ReportError(&out, err)
	}
	return cli.ExitCode(err), out.String()
}

// expect runs a command line and checks the exit code and a part of the output.
func (h harness) expect(t *testing.T, code int, wanted string, args ...string) {
	t.Helper()
	got, output := h.run(t, args...)
	if got != code || !strings.Contains(output, wanted) {
		t.Errorf("run starter %s: got exit code %d and the output\n%s\nwant exit code %d and %q",
			strings.Join(args, " "), got, output, code, wanted)
	}
}
