package workflows_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/lease"
	"berth/workflows"
)

var record = flag.Bool("record", false, "write the histories of the scenarios to testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(temporaltest.Main(m))
}

// scenario is a workflow on a real Temporal server, with a worker that has fake activities.
type scenario struct {
	t      *testing.T
	client client.Client
	id     string
	queue  string
	// isFlooded is true after a burst of signals. The server ends a workflow task itself if more than a
	// hundred signals arrive during the task.
	isFlooded bool
}

func newScenario(t *testing.T, typ, id string, functions map[string]any) *scenario {
	t.Helper()
	return newScenarioWithInput(t, typ, contract.Input{Key: contract.Key(id)}, id, functions)
}

func newScenarioWithInput(
	t *testing.T,
	typ string,
	in contract.Input,
	id string,
	functions map[string]any,
) *scenario {
	t.Helper()
	s := &scenario{
		t:      t,
		client: temporaltest.New(t).Client,
		id:     id,
		queue:  contract.TaskQueue(typ),
	}
	options := worker.Options{
		DeadlockDetectionTimeout:     10 * time.Minute,
		MaxHeartbeatThrottleInterval: activities.HeartbeatInterval,
	}
	if !*record {
		options.Interceptors = []interceptor.WorkerInterceptor{&patient{}}
	}
	w := worker.New(s.client, s.queue, options)
	workflows.Register(w, s.queue)
	activities.Register(w, functions)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID:            id,
		TaskQueue:     s.queue,
		StaticSummary: "a scenario",
		// The server waits for minutes before it repeats a workflow task that has timed out several times on
		// a busy machine.
		WorkflowTaskTimeout: 2 * time.Minute,
	}, typ, in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scenario) signal(name string, arg any) {
	s.t.Helper()
	if err := s.client.SignalWorkflow(s.t.Context(), s.id, "", name, arg); err != nil {
		s.t.Fatal(err)
	}
}

// signalDeletion tells the workflow that the test has deleted its row. On a busy machine the workflow may
// read the row, and end, before the signal.
func (s *scenario) signalDeletion() {
	s.t.Helper()
	err := s.client.SignalWorkflow(s.t.Context(), s.id, "", contract.SignalChanged, nil)
	if missing := new(serviceerror.NotFound); err != nil && !errors.As(err, &missing) {
		s.t.Fatal(err)
	}
}

// waitForState waits until the query "why" returns the given state. waitForState returns the result of the
// query "why" that has the given state.
func (s *scenario) waitForState(state string) contract.Why {
	s.t.Helper()
	return s.waitUntil("has the state "+state, func(why contract.Why) bool { return why.State == state })
}

// waitUntil waits until the answer to the query "why" is good, and returns this answer. The parameter `what`
// says what a good answer is.
func (s *scenario) waitUntil(what string, good func(contract.Why) bool) contract.Why {
	s.t.Helper()
	var why contract.Why
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		v, err := s.client.QueryWorkflow(s.t.Context(), s.id, "", contract.QueryWhy)
		if err == nil && v.Get(&why) == nil && good(why) {
			return why
		}
	}
	s.t.Fatalf("%s: the query \"why\" gave no answer that %s within 10 minutes; the last answer: %+v",
		s.id, what, why)
	return why
}

// finishAndRecord waits until the workflow has ended, and checks that no workflow task failed. With the flag
// -record, finishAndRecord writes the history of the run `firstRun` to testdata.
func (s *scenario) finishAndRecord(name, firstRun string) {
	s.t.Helper()
	if err := s.client.GetWorkflow(s.t.Context(), s.id, "").Get(s.t.Context(), nil); err != nil {
		s.t.Fatal(err)
	}
	h := &history.History{}
	for i := s.client.GetWorkflowHistory(s.t.Context(), s.id, firstRun, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
		e, err := i.Next()
		if err != nil {
			s.t.Fatal(err)
		}
		a := e.GetWorkflowTaskFailedEventAttributes()
		endedByServer := s.isFlooded && a.GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND
		if a != nil && a.Cause != enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND && !endedByServer {
			s.t.Errorf("a workflow task failed, want none to fail: %v", a)
		}
		h.Events = append(h.Events, e)
	}
	if !*record {
		return
	}
	raw, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata", name+".json"), raw, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) currentRun() string {
	s.t.Helper()
	d, err := s.client.DescribeWorkflowExecution(s.t.Context(), s.id, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

func TestRealServer_Port(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"DHCP", "L2"}, novaFailures: 2}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")

	s.signal(contract.SignalProvisioningComplete, "malformed")
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	u, err := s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID:   s.id,
		UpdateName:   contract.UpdateProvisioningComplete,
		WaitForStage: client.WorkflowUpdateStageCompleted,
		Args:         []any{contract.Report{Entity: "DHCP", Host: "cmp-1"}},
	})
	var result contract.ReportResult
	if err == nil {
		err = u.Get(t.Context(), &result)
	}
	if err != nil || result.Status != "ACTIVE" || len(result.Remaining) != 0 {
		t.Errorf(
			"report to the port by update: got the result %+v, error %v; want ACTIVE and no remaining entities",
			result,
			err,
		)
	}
	why := s.waitForState("ACTIVE")
	if why.IgnoredReports != 1 {
		t.Errorf("query \"why\" after a malformed report: want one ignored report, got %+v", why)
	}
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port", "")

	err = s.client.SignalWorkflow(t.Context(), s.id, "", contract.SignalProvisioningComplete,
		contract.Report{Entity: "L2", Host: "cmp-1"})
	if err == nil {
		t.Error(
			"the workflow of a deleted port accepted a report, want NotFound, because otherwise the agent would never stop its retries",
		)
	}
}

// berth refuses unsigned reports. The result of an update tells the sender of the refusal. The query "why"
// describes the last refused report until berth accepts a report.
func TestRealServer_PortRefusesUnsignedReports(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"DHCP", "L2"}, requireSignatures: true}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")
	unsigned := contract.Report{Entity: "L2", Host: "cmp-1"}
	s.signal(contract.SignalProvisioningComplete, unsigned)
	s.waitUntil("describes the refused signal", func(why contract.Why) bool {
		const refusal = `The last report of "L2" on host "cmp-1" was refused: the report is not signed.`
		return why.IgnoredReports == 1 && strings.Contains(why.Sentence, refusal)
	})
	u, err := s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID:   s.id,
		UpdateName:   contract.UpdateProvisioningComplete,
		WaitForStage: client.WorkflowUpdateStageCompleted,
		Args:         []any{unsigned},
	})
	if err == nil {
		err = u.Get(t.Context(), nil)
	}
	var refused *temporal.ApplicationError
	if !errors.As(err, &refused) || refused.Type() != "ReportRefused" ||
		refused.Message() != contract.RefusedUnsigned.Sentence() {
		t.Errorf("send an unsigned report by update: got error %v, want ReportRefused with the reason", err)
	}
	s.signal(contract.SignalChanged, nil)
	s.waitUntil("still describes the refused update",
		func(why contract.Why) bool { return strings.Contains(why.Sentence, "was refused") })

	signed := unsigned
	signed.Signature = "signature"
	s.signal(contract.SignalProvisioningComplete, signed)

	s.waitUntil("waits for DHCP only, without the refusal", func(why contract.Why) bool {
		return len(why.Waiting) == 1 && why.Waiting[0].For == "DHCP" &&
			!strings.Contains(why.Sentence, "refused")
	})
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-refused", "")
}

// The workflow's input contains the port's status, so the workflow reads the row only after the first report.
func TestRealServer_PortWithInitialStatus(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	seen := contract.Input{
		Key: portID,
		PortStatus: &contract.PortStatus{
			Status:   "DOWN",
			Sentence: "Port web-1 is DOWN.",
			Waiting:  []contract.Waiting{{For: "L2"}},
		},
	}
	s := newScenarioWithInput(t, contract.Port, seen, contract.PortID(portID), w.functions())
	why := s.waitForState("DOWN")
	w.mu.Lock()
	if w.reads != 0 || len(why.Waiting) != 1 || why.Waiting[0].For != "L2" {
		t.Errorf(
			"query \"why\" of a port whose status is in the input: after %d reads got %+v; want 0 reads, and the port waiting for L2",
			w.reads,
			why,
		)
	}
	w.mu.Unlock()
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	s.waitForState("ACTIVE")
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-fresh", "")
}

func TestRealServer_PortDeadline(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}, errorAfter: 100 * time.Millisecond}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("ERROR")
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	s.waitForState("ACTIVE")
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-overdue", "")
}

func TestRealServer_PortContinuesAsNewWithoutLosingReports(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")
	first := s.currentRun()

	for range 250 {
		s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "elsewhere"})
	}
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	// Temporal may repeat a workflow task. A repeated workflow task applies its reports again, so the row may
	// count more than 250 ignored reports.
	if why := s.waitForState("ACTIVE"); why.IgnoredReports < 250 {
		t.Errorf(
			"query \"why\" after 250 reports from another host: got %d ignored reports, want at least 250",
			why.IgnoredReports,
		)
	}
	if s.currentRun() == first {
		t.Error("the first run handled all messages, want it to continue as new")
	}
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-handover", first)
}

func TestRealServer_JournalEntry(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*fakeRows{
		"journal":         {entry: "pending"},
		"journal-outage":  {entry: "pending", controllerFailures: 3},
		"journal-blocked": {entry: "pending", blockedReads: 1},
		"journal-retried": {entry: "pending", controllerFailures: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, contract.JournalEntry, contract.JournalID("7"), w.functions())
			switch name {
			case "journal-blocked":
				s.waitForState("pending")
				s.signal(contract.SignalChanged, nil)
			// on a fast machine, the signal arrives during the pause of two seconds after the third attempt
			case "journal-retried":
				await(t, "the third attempt has failed", func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return w.regularAttempts >= 3
				})
				s.signal(contract.SignalChanged, nil)
				w.mu.Lock()
				w.controllerFailures = 0
				w.mu.Unlock()
			}
			s.finishAndRecord(name, "")
			if w.entry != "completed" {
				t.Errorf("end of the workflow: got entry state %s, want completed", w.entry)
			}
		})
	}
}

func TestRealServer_Lease(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*fakeLease){
		"lease":         func(*fakeLease) {},
		"lease-refused": func(w *fakeLease) { w.conflicts = 1 },
		"lease-unwilling": func(w *fakeLease) {
			w.cloudFailures = 2
			w.lease.Reservations[0].BeforeEnd = "snapshot"
			w.lease.Events = append(w.lease.Events, lease.Event{
				ID:     uuid.New(),
				Type:   lease.BeforeEndLease,
				At:     w.created.Add(2 * time.Second),
				Status: lease.EventUndone,
			})
		},
		"lease-failed": func(w *fakeLease) {
			w.provisionErr = temporal.NewNonRetryableApplicationError("no free capacity", activities.Conflict, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFakeLease(time.Now, time.Second, 3*time.Second)
			w.realClock = true
			prepare(w)
			s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
			s.finishAndRecord(name, "")
			if got := w.lease.Status; got != lease.Terminated &&
				(name != "lease-failed" || got != lease.Error) {
				t.Errorf(
					"end of the workflow: got lease status %s, want TERMINATED (ERROR for lease-failed); log: %v",
					got,
					w.log,
				)
			}
		})
	}
}

func TestRealServer_DeletedLease(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, -time.Second, time.Hour)
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
	s.waitForState(string(lease.Active))

	w.mu.Lock()
	w.lease.DeleteRequested = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("lease-deleted", "")

	if !w.deleted || len(w.provisioned) != 0 {
		t.Errorf(
			"delete a lease: deleted %v, still provisioned %v; want it deleted and no reservation provisioned",
			w.deleted,
			w.provisioned,
		)
	}
}

func TestRealServer_DeliveryRetriesDuringOutage(t *testing.T) {
	t.Parallel()
	for workflow, id := range map[string]string{
		contract.Webhook:            contract.WebhookID(leaseID.String()),
		contract.AgentNotifications: contract.AgentNotificationsID(leaseID.String()),
		contract.Pool:               contract.PoolID("cmp-1"),
	} {
		t.Run(workflow, func(t *testing.T) {
			t.Parallel()
			w := &fakeRows{receiverFailures: 1 << 20}
			s := newScenario(t, workflow, id, w.functions())
			if why := s.waitForState("undelivered"); why.LastError == "" || len(why.Waiting) != 1 {
				t.Errorf(
					"query \"why\" while the receiver of the delivery is unavailable: got %+v, want an error and one entity to wait for",
					why,
				)
			}
			w.mu.Lock()
			w.receiverFailures = 0
			w.mu.Unlock()
			s.finishAndRecord(strings.ToLower(workflow), "")
			if w.delivered != 1 {
				t.Errorf("deliveries of the notification: got %d, want 1", w.delivered)
			}
		})
	}
}

func TestRealServer_MalformedKeyFailsWorkflow(t *testing.T) {
	t.Parallel()
	s := newScenario(t, contract.Port, contract.PortID("not-a-uuid"),
		activities.New(activities.Options{}).Functions())

	err := s.client.GetWorkflow(t.Context(), s.id, "").Get(context.Background(), nil)

	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != activities.Invalid {
		t.Errorf("start a workflow with a malformed key: want an application error of type %s, got %v",
			activities.Invalid, err)
	}
}

func TestRealServer_Maintenance(t *testing.T) {
	t.Parallel()
	s := newScenario(t, contract.Maintenance,
		contract.MaintenanceID(contract.KeySweep), (&fakeRows{}).functions())
	s.finishAndRecord("maintenance", "")
}

func TestRealServer_MaintenanceContinuesAfterAFailedSweep(t *testing.T) {
	t.Parallel()
	w := &fakeRows{
		failingPart: activities.Sweep,
		partError:   temporal.NewNonRetryableApplicationError("the sweep is broken", activities.Invalid, nil),
	}
	s := newScenario(t, contract.Maintenance, contract.MaintenanceID(contract.KeySweep), w.functions())
	s.finishAndRecord("maintenance-failed", "")
	if w.runChecks != 1 || w.healRounds != 1 {
		t.Errorf("round with a failed sweep: got %d checks of the controller and %d healings, want one each",
			w.runChecks, w.healRounds)
	}
}

func TestRealServer_MirrorRun(t *testing.T) {
	t.Parallel()
	for key, typ := range contract.RunWorkflows {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			w := &fakeRows{lastStep: make(chan struct{}), runSteps: []contract.RunProgress{
				{State: "running", Sentence: "port 100 of 300"},
				{
					State:    "running",
					Sentence: "waits until 3 more entries are mirrored",
					Delay:    time.Second,
					Waiting:  []contract.Waiting{{For: "controller"}},
				},
				{State: "done", Sentence: "done"},
			}}
			s := newScenario(t, typ, contract.RunID(key), w.functions())
			if why := s.waitForState("running"); why.Object != "odl/"+key {
				t.Errorf(
					"query \"why\" of an open run: got %+v, want the object odl/ and the kind of the run",
					why,
				)
			}
			close(w.lastStep)
			s.finishAndRecord("run-"+key, "")
			if len(w.runSteps) != 0 {
				t.Errorf("steps of the run that the workflow did not perform: got %v, want none", w.runSteps)
			}
		})
	}
}

func TestRealServer_LargeSignalsCauseContinueAsNew(t *testing.T) {
	t.Parallel()
	for typ, c := range map[string]struct {
		id, state string
		functions map[string]any
	}{
		contract.Port:         {contract.PortID(portID), "DOWN", (&fakeRows{host: "cmp-1", blocks: []string{"L2"}}).functions()},
		contract.Lease:        {contract.LeaseID(leaseID.String()), string(lease.Pending), newFakeLease(time.Now, time.Hour, 2*time.Hour).functions()},
		contract.JournalEntry: {contract.JournalID("7"), "pending", (&fakeRows{entry: "pending", blockedReads: 100}).functions()},
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, typ, c.id, c.functions)
			s.waitForState(c.state)
			first := s.currentRun()

			// Temporal suggests continue-as-new for a history of 4 MiB, and terminates a run at 50 MiB
			for range 12 {
				s.signal("unknown-signal", strings.Repeat("x", 500_000))
			}

			s.waitForState(c.state)
			for deadline := time.Now().Add(10 * time.Minute); s.currentRun() == first; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal(
						"the first run did not continue as new within 10 minutes, want it to continue as new",
					)
				}
			}
			s.waitForState(c.state)
		})
	}
}

// The web UI shows the summary of a timer, so the summary names the event that the lease waits for.
func TestRealServer_TimerSummaryNamesEvent(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, time.Hour, 2*time.Hour)
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
	s.waitForState(string(lease.Pending))

	var summary string
	for i := s.client.GetWorkflowHistory(t.Context(), s.id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
		e, err := i.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetEventType() == enums.EVENT_TYPE_TIMER_STARTED {
			if err := converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary); err != nil {
				t.Fatal(err)
			}
		}
	}

	if want := "start_lease at " + w.created.Add(time.Hour).UTC().Format(time.RFC3339); summary != want {
		t.Errorf("summary of the timer in the history: got %q, want %q", summary, want)
	}
}
