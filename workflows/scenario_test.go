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
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/lease"
	"berth/workflows"
)

var record = flag.Bool("record", false, "write the histories of the scenarios into testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(temporaltest.Main(m))
}

// stage is a scenario on a real server: a worker with a world behind its activities.
type stage struct {
	t      *testing.T
	client client.Client
	id     string
	queue  string
}

func newStage(t *testing.T, typ, id string, world any) *stage {
	t.Helper()
	return newStageWith(t, typ, contract.Input{Key: contract.Key(id)}, id, world)
}

func newStageWith(t *testing.T, typ string, in contract.Input, id string, world any) *stage {
	t.Helper()
	s := &stage{t: t, client: temporaltest.New(t).Client, id: id, queue: contract.TaskQueue(typ)}
	w := worker.New(s.client, s.queue, worker.Options{DeadlockDetectionTimeout: time.Minute})
	workflows.Register(w, s.queue)
	w.RegisterActivity(world)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: s.queue, StaticSummary: "a scenario"},
		typ, in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) signal(name string, arg any) {
	s.t.Helper()
	if err := s.client.SignalWorkflow(s.t.Context(), s.id, "", name, arg); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for the workflow to say that it is in that state, and returns what it says.
func (s *stage) until(state string) contract.Why {
	s.t.Helper()
	var why contract.Why
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		v, err := s.client.QueryWorkflow(s.t.Context(), s.id, "", contract.QueryWhy)
		if err == nil && v.Get(&why) == nil && why.State == state {
			return why
		}
	}
	s.t.Fatalf("%s never was %s; it says %+v", s.id, state, why)
	return why
}

// finish waits for the end, asserts that no workflow task failed, and keeps the history of the first run.
func (s *stage) finish(name, firstRun string) {
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
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil && a.Cause != enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			s.t.Errorf("a workflow task failed: %v", a)
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

func (s *stage) run() string {
	s.t.Helper()
	d, err := s.client.DescribeWorkflowExecution(s.t.Context(), s.id, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

func TestPortOnARealServer(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"DHCP", "L2"}, novaDown: 2}
	s := newStage(t, contract.Port, contract.PortID(portKey), w)
	s.until("DOWN")

	s.signal(contract.SignalProvisioningComplete, "nonsense")
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	u, err := s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: s.id, UpdateName: contract.UpdateProvisioningComplete,
		WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{contract.Report{Entity: "DHCP", Host: "cmp-1"}}})
	var verdict contract.ReportResult
	if err == nil {
		err = u.Get(t.Context(), &verdict)
	}
	if err != nil || verdict.Status != "ACTIVE" || len(verdict.Remaining) != 0 {
		t.Errorf("verdict %+v, error %v", verdict, err)
	}
	why := s.until("ACTIVE")
	if why.IgnoredReports != 1 {
		t.Errorf("want one ignored message, got %+v", why)
	}
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finish("port", "")

	err = s.client.SignalWorkflow(t.Context(), s.id, "", contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	if err == nil {
		t.Error("a deleted port took a report; the agent would never stop")
	}
}

// What the row was is known from the start, so that nobody looks until somebody reports.
func TestFreshPortOnARealServer(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}}
	seen := contract.Input{Key: portKey, PortStatus: &contract.PortStatus{Status: "DOWN", Sentence: "Port web-1 is DOWN.", Waiting: []contract.Waiting{{For: "L2"}}}}
	s := newStageWith(t, contract.Port, seen, contract.PortID(portKey), w)
	why := s.until("DOWN")
	w.mu.Lock()
	if w.looks != 0 || len(why.Waiting) != 1 || why.Waiting[0].For != "L2" {
		t.Errorf("after %d looks it says %+v", w.looks, why)
	}
	w.mu.Unlock()
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	s.until("ACTIVE")
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finish("port-fresh", "")
}

func TestOverduePortOnARealServer(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}, patience: 100 * time.Millisecond}
	s := newStage(t, contract.Port, contract.PortID(portKey), w)
	s.until("ERROR")
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	s.until("ACTIVE")
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finish("port-overdue", "")
}

func TestPortHandsOverToANewRunWithoutLosingAReport(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}}
	s := newStage(t, contract.Port, contract.PortID(portKey), w)
	s.until("DOWN")
	first := s.run()

	for range 250 {
		s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "elsewhere"})
	}
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	// A workflow task that the server makes us repeat hands its reports to the row again, so more may be counted.
	if why := s.until("ACTIVE"); why.IgnoredReports < 250 {
		t.Errorf("%d of 250 reports were counted", why.IgnoredReports)
	}
	if s.run() == first {
		t.Error("the first run took all messages")
	}
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finish("port-handover", first)
}

func TestEntryOnARealServer(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*world{
		"journal":         {entry: "pending"},
		"journal-outage":  {entry: "pending", odlDown: 3},
		"journal-blocked": {entry: "pending", blockers: 1},
		"journal-retried": {entry: "pending", odlDown: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, contract.JournalEntry, contract.JournalID("7"), w)
			switch name {
			case "journal-blocked":
				s.until("pending")
				s.signal(contract.SignalChanged, nil)
			case "journal-retried": // in the pause of two seconds after the third attempt
				for tried := 0; tried < 3; time.Sleep(10 * time.Millisecond) {
					w.mu.Lock()
					if tried = w.attempts; tried == 3 {
						w.odlDown = 0
					}
					w.mu.Unlock()
				}
				s.signal(contract.SignalChanged, nil)
			}
			s.finish(name, "")
			if w.entry != "completed" {
				t.Errorf("the entry is %s", w.entry)
			}
		})
	}
}

func TestLeaseOnARealServer(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*leaseWorld){
		"lease":         func(*leaseWorld) {},
		"lease-refused": func(w *leaseWorld) { w.conflicts = 1 },
		"lease-unwilling": func(w *leaseWorld) {
			w.unwilling = 2
			w.lease.Reservations[0].BeforeEnd = "snapshot"
			w.lease.Events = append(w.lease.Events, lease.Event{ID: uuid.New(), Type: lease.BeforeEndLease, At: w.began.Add(2 * time.Second), Status: lease.Undone})
		},
		"lease-failed": func(w *leaseWorld) {
			w.wireErr = temporal.NewNonRetryableApplicationError("no room", activities.Conflict, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLeaseWorld(time.Now, time.Second, 3*time.Second)
			w.awake = true
			prepare(w)
			s := newStage(t, contract.Lease, contract.LeaseID(leaseID.String()), w)
			s.finish(name, "")
			if got := w.lease.Status; got != lease.Terminated && (name != "lease-failed" || got != lease.Error) {
				t.Errorf("the lease is %s: %v", got, w.log)
			}
		})
	}
}

func TestDeletedLeaseOnARealServer(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(time.Now, -time.Second, time.Hour)
	s := newStage(t, contract.Lease, contract.LeaseID(leaseID.String()), w)
	s.until(string(lease.Active))

	w.mu.Lock()
	w.lease.DeleteRequested = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finish("lease-deleted", "")

	if !w.gone || len(w.wired) != 0 {
		t.Errorf("gone %v, still wired %v", w.gone, w.wired)
	}
}

func TestWhatIsToldOutlastsWhoListens(t *testing.T) {
	t.Parallel()
	for workflow, id := range map[string]string{
		contract.Webhook:  contract.WebhookID(leaseID.String()),
		contract.Announce: contract.AnnounceID(leaseID.String()),
		contract.Pool:     contract.PoolID("cmp-1"),
	} {
		t.Run(workflow, func(t *testing.T) {
			t.Parallel()
			w := &world{listenerDown: 1 << 20}
			s := newStage(t, workflow, id, w)
			if why := s.until("untold"); why.LastError == "" || len(why.Waiting) != 1 {
				t.Errorf("it says %+v", why)
			}
			w.mu.Lock()
			w.listenerDown = 0
			w.mu.Unlock()
			s.finish(strings.ToLower(workflow), "")
			if w.told != 1 {
				t.Errorf("told %d times", w.told)
			}
		})
	}
}

func TestUnknownKeyFailsTheWorkflowNotTheTask(t *testing.T) {
	t.Parallel()
	s := newStage(t, contract.Port, contract.PortID("not-a-uuid"), activities.New(activities.Options{}))

	err := s.client.GetWorkflow(t.Context(), s.id, "").Get(context.Background(), nil)

	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != activities.Invalid {
		t.Errorf("want an application error of type %s, got %v", activities.Invalid, err)
	}
}

func TestSweepOnARealServer(t *testing.T) {
	t.Parallel()
	s := newStage(t, contract.Maintenance, contract.MaintenanceID(contract.KeySweep), &world{})
	s.finish("maintenance", "")
}

func TestRunsOnARealServer(t *testing.T) {
	t.Parallel()
	for key, typ := range contract.RunWorkflows {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			w := &world{steps: []contract.RunProgress{
				{State: "running", Sentence: "port 100 of 300"},
				{State: "running", Sentence: "waits until 3 more entries are mirrored", Delay: time.Second, Waiting: []contract.Waiting{{For: "controller"}}},
				{State: "done", Sentence: "done"},
			}}
			s := newStage(t, typ, contract.RunID(key), w)
			if why := s.until("running"); why.Object != "odl/"+key {
				t.Errorf("it says %+v", why)
			}
			s.finish("run-"+key, "")
			if len(w.steps) != 0 {
				t.Errorf("steps left: %v", w.steps)
			}
		})
	}
}

func TestFloodOfHugeSignalsIsLeftBehindWithTheRun(t *testing.T) {
	t.Parallel()
	for typ, c := range map[string]struct {
		id, state string
		world     any
	}{
		contract.Port:         {contract.PortID(portKey), "DOWN", &world{host: "cmp-1", blocks: []string{"L2"}}},
		contract.Lease:        {contract.LeaseID(leaseID.String()), string(lease.Pending), newLeaseWorld(time.Now, time.Hour, 2*time.Hour)},
		contract.JournalEntry: {contract.JournalID("7"), "pending", &world{entry: "pending", blockers: 100}},
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, typ, c.id, c.world)
			s.until(c.state)
			first := s.run()

			for range 12 { // the server suggests a new run from 4 MiB on and ends an old one at 50 MiB
				s.signal("nobody listens to this", strings.Repeat("x", 500_000))
			}

			s.until(c.state)
			for deadline := time.Now().Add(10 * time.Minute); s.run() == first; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the first run keeps them all")
				}
			}
			s.until(c.state)
		})
	}
}

// Whoever looks at a history reads there what a timer is for.
func TestTimerIsNamedAfterWhatItBrings(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(time.Now, time.Hour, 2*time.Hour)
	s := newStage(t, contract.Lease, contract.LeaseID(leaseID.String()), w)
	s.until(string(lease.Pending))

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

	if want := "start_lease at " + w.began.Add(time.Hour).UTC().Format(time.RFC3339); summary != want {
		t.Errorf("%q instead of %q", summary, want)
	}
}
