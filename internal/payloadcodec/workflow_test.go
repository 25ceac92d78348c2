package payloadcodec_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/payloadcodec"
)

func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m)) }

const queue = "codec"

// connect returns a client with the converters of the codec.
func connect(t *testing.T, n temporaltest.Namespace, c payloadcodec.Codec) client.Client {
	t.Helper()
	o := client.Options{HostPort: n.Address, Namespace: n.Name}
	c.Apply(&o)
	connected, err := temporaltest.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connected.Close)
	return connected
}

// readMessages waits for a signal and for an update, and returns what it has received.
func readMessages(ctx workflow.Context, input string) (string, error) {
	update := ""
	err := workflow.SetUpdateHandler(
		ctx,
		"report",
		func(_ workflow.Context, r contract.Report) (contract.ReportResult, error) {
			update = r.Entity
			return contract.ReportResult{Status: "ACTIVE"}, nil
		},
	)
	if err != nil {
		return "", err
	}
	var raw converter.RawValue
	workflow.GetSignalChannel(ctx, "report").Receive(ctx, &raw)
	var r contract.Report
	signal := "malformed"
	if converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &r) == nil {
		signal = r.Entity
	}
	err = workflow.Await(ctx, func() bool { return update != "" })
	return strings.Join([]string{input, signal, update}, " "), err
}

// startWorker runs the workflow readMessages until the test ends or `stop` is called.
func startWorker(t *testing.T, c client.Client) (stop func()) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(readMessages)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w.Stop
}

// awaitTaskFailure waits until a workflow task has failed, and returns the message of the failure.
func awaitTaskFailure(t *testing.T, c client.Client, id string) string {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		all := c.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for all.HasNext() {
			e, err := all.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f := e.GetWorkflowTaskFailedEventAttributes(); f != nil {
				return f.GetFailure().GetMessage()
			}
			if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED {
				t.Fatalf("the workflow has failed, want that only the task fails: %v", e)
			}
		}
	}
	t.Fatal("no workflow task has failed after five minutes, want one")
	return ""
}

// A process without the key fails the workflow task and not the workflow, which continues in another
// process.
func TestWorkflow_WaitsForAProcessWithTheKey(t *testing.T) {
	t.Parallel()
	n := temporaltest.New(t)
	with := connect(t, n, newCodec(t, true, newKey(1)))
	run, err := with.ExecuteWorkflow(
		t.Context(),
		client.StartWorkflowOptions{ID: "w", TaskQueue: queue},
		readMessages,
		secret,
	)
	if err != nil {
		t.Fatal(err)
	}

	stop := startWorker(t, connect(t, n, payloadcodec.Codec{}))
	if got := awaitTaskFailure(t, with, "w"); !strings.Contains(got, payloadcodec.KeyID(newKey(1))) ||
		!strings.Contains(got, "set BERTH_TEMPORAL_ENCRYPTION_KEYS") {
		t.Errorf("failure of the workflow task: got %q, want the ID of the key and the setting", got)
	}
	stop()

	t.Cleanup(startWorker(t, with))
	sendReports(t, with, "L2")
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != secret+" L2 L2" {
		t.Errorf("result of the workflow: got %q, error %v; want %q", got, err, secret+" L2 L2")
	}
}

// sendReports sends a report as a signal and as an update.
func sendReports(t *testing.T, c client.Client, entity string) {
	t.Helper()
	if err := c.SignalWorkflow(t.Context(), "w", "", "report", contract.Report{Entity: entity}); err != nil {
		t.Fatal(err)
	}
	if err := update(t, c, entity); err != nil {
		t.Fatal(err)
	}
}

func update(t *testing.T, c client.Client, entity string) error {
	t.Helper()
	handle, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID:   "w",
		UpdateName:   "report",
		Args:         []any{contract.Report{Entity: entity}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(t.Context(), nil)
}

// Anyone who can send a signal could otherwise stop a workflow with a key that does not exist.
func TestWorkflow_MessageWithUnknownKeyIsMalformed(t *testing.T) {
	t.Parallel()
	n := temporaltest.New(t)
	with, stranger := connect(t, n, newCodec(t, true, newKey(1))), connect(t, n, newCodec(t, true, newKey(9)))
	t.Cleanup(startWorker(t, with))
	run, err := with.ExecuteWorkflow(
		t.Context(),
		client.StartWorkflowOptions{ID: "w", TaskQueue: queue},
		readMessages,
		secret,
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.SignalWorkflow(t.Context(), "w", "", "report", contract.Report{Entity: "L2"}); err != nil {
		t.Fatal(err)
	}
	if err := update(t, stranger, "L2"); err == nil {
		t.Error("update with an unknown key: got no error, want a refusal")
	}
	if err := update(t, n.Client, "DHCP"); err != nil { // in clear text, as an agent without keys sends it
		t.Errorf("update in clear text: %v", err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != secret+" malformed DHCP" {
		t.Errorf("result of the workflow: got %q, error %v; want %q", got, err, secret+" malformed DHCP")
	}
}

// The first workflow task of the workflow ran before the rotation, and the last one runs after it.
func TestWorkflow_ContinuesAfterRotation(t *testing.T) {
	t.Parallel()
	n := temporaltest.New(t)
	before := connect(t, n, newCodec(t, true, newKey(1)))
	after := connect(t, n, newCodec(t, true, newKey(2), newKey(1)))
	stop := startWorker(t, before)
	run, err := before.ExecuteWorkflow(
		t.Context(),
		client.StartWorkflowOptions{ID: "w", TaskQueue: queue},
		readMessages,
		secret,
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := update(t, before, "L2"); err != nil {
		t.Fatal(err)
	}
	stop()

	t.Cleanup(startWorker(t, after))
	if err := after.SignalWorkflow(t.Context(), "w", "", "report", contract.Report{Entity: "DHCP"}); err != nil {
		t.Fatal(err)
	}
	run = after.GetWorkflow(t.Context(), "w", run.GetRunID())
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != secret+" DHCP L2" {
		t.Errorf("result of the workflow: got %q, error %v; want %q", got, err, secret+" DHCP L2")
	}
	if keys := keyIDs(t, after, "w"); !keys[payloadcodec.KeyID(newKey(1))] || !keys[payloadcodec.KeyID(newKey(2))] {
		t.Errorf("keys in the history: got %v, want both", keys)
	}
}

// keyIDs returns the IDs of the keys that encrypt the input, the signals and the result of a workflow.
func keyIDs(t *testing.T, c client.Client, id string) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	all := c.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*common.Payloads{
			e.GetWorkflowExecutionStartedEventAttributes().GetInput(),
			e.GetWorkflowExecutionSignaledEventAttributes().GetInput(),
			e.GetWorkflowExecutionCompletedEventAttributes().GetResult(),
		} {
			for _, payload := range p.GetPayloads() {
				keys[string(payload.GetMetadata()["encryption-key-id"])] = true
			}
		}
	}
	return keys
}

const activityQueue = "codec-activities"

// callEcho calls the activity echo with the retries of berth's regular activities.
func callEcho(ctx workflow.Context, input string) (result string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           activityQueue,
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1},
	})
	err = workflow.ExecuteActivity(ctx, echo, input).Get(ctx, &result)
	return result, err
}

func echo(input string) (string, error) { return input, nil }

// startActivityWorker runs the activity echo until `stop` is called.
func startActivityWorker(t *testing.T, c client.Client) (stop func()) {
	t.Helper()
	w := worker.New(c, activityQueue, worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivity(echo)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w.Stop
}

// An activity that begins in a process without the key is repeated in another process.
func TestActivity_IsRepeatedInAProcessWithTheKey(t *testing.T) {
	t.Parallel()
	n := temporaltest.New(t)
	with := connect(t, n, newCodec(t, true, newKey(1)))
	w := worker.New(with, queue, worker.Options{})
	w.RegisterWorkflow(callEcho)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	stop := startActivityWorker(t, connect(t, n, payloadcodec.Codec{}))
	run, err := with.ExecuteWorkflow(
		t.Context(),
		client.StartWorkflowOptions{ID: "w", TaskQueue: queue},
		callEcho,
		secret,
	)
	if err != nil {
		t.Fatal(err)
	}
	message := ""
	for deadline := time.Now().Add(5 * time.Minute); message == ""; time.Sleep(50 * time.Millisecond) {
		d, err := with.DescribeWorkflowExecution(t.Context(), "w", "")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no attempt of the activity has failed, want one; error %v", err)
		}
		for _, a := range d.GetPendingActivities() {
			message = a.GetLastFailure().GetMessage()
		}
	}
	if !strings.Contains(message, "set BERTH_TEMPORAL_ENCRYPTION_KEYS") {
		t.Errorf("failure of the activity: got %q, want the setting", message)
	}
	stop()

	t.Cleanup(startActivityWorker(t, with))
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != secret {
		t.Errorf("result of the workflow: got %q, error %v; want %q", got, err, secret)
	}
}
