package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/contract"
	"berth/workflows"
)

// fakeRows replaces the activities of all workflows except leases. fakeRows keeps the rows of one port, one
// journal entry and one run in memory, and simulates the faults that a test sets. The methods of fakeRows
// have the names of the activities that they replace.
type fakeRows struct {
	mu               sync.Mutex
	deleted          bool
	databaseFailures int // number of reads of the port's row that still fail
	host             string
	project          string // if set, the results contain the port's attributes
	blocks           []string
	ignored          int64
	pendingEvents    int    // recorded events that are not delivered
	delivered        int    // delivered events or notifications
	novaFailures     int    // number of calls to Nova that still fail
	duringDelivery   func() // called once during a delivery to Nova
	// number of calls to the webhook, RabbitMQ or Nova's aggregates that still fail
	receiverFailures   int
	reportCount        int                 // number of applied reports
	appliedReports     []contract.Report   // applied reports, in the order in which they were applied
	reportLists        [][]contract.Report // lists of reports that the activities got
	reads              int                 // number of reads of the port's row
	requireSignatures  bool                // refuse reports without a signature
	errorAfter         time.Duration       // time after which a blocked port is in ERROR; 0: never
	deadline           time.Time
	blockedReads       int    // number of attempts that still find the entry blocked
	moreBlockers       int    // number of blockers of a blocked entry besides journal/1
	entry              string // state of the entry
	controllerFailures int    // number of calls to the controller that still fail
	rejects            bool   // the controller rejects the entry permanently
	localAttempts      int    // number of attempts in local activities
	regularAttempts    int    // number of attempts in regular activities
	sweptSince         []time.Time
	runChecks          int
	healRounds         int                    // number of HealReservations calls
	sweepFailures      []string               // failures in the result of Sweep
	failingPart        string                 // name of the activity of the maintenance that fails
	partError          error                  // error of the activity failingPart
	runSteps           []contract.RunProgress // number of steps that are left before the run is idle
	lastStep           chan struct{}          // if set, the last step waits until lastStep is closed
}

// earlierHost is the host of an earlier binding of the port.
const earlierHost = "cmp-earlier"

var errDatabaseAway = errors.New("dial tcp 192.0.2.1:5432: connection refused")

func (w *fakeRows) ApplyPortReports(
	_ context.Context,
	_ string,
	reports []contract.Report,
) (contract.PortStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.databaseFailures > 0 {
		w.databaseFailures--
		return contract.PortStatus{}, errDatabaseAway
	}
	if w.deleted {
		return contract.PortStatus{Deleted: true, Status: "DELETED", PendingNovaEvents: w.pendingEvents}, nil
	}
	w.appliedReports, w.reportLists = append(w.appliedReports, reports...), append(w.reportLists, reports)
	var refused []contract.Refusal
	stale := make([]bool, len(reports))
	if w.requireSignatures {
		refused = make([]contract.Refusal, len(reports))
	}
	for at, r := range reports {
		w.reportCount++
		if w.requireSignatures && r.Signature == "" {
			refused[at], r = contract.RefusedUnsigned, contract.Report{}
		}
		i := slices.Index(w.blocks, r.Entity)
		if i < 0 || r.Host != w.host {
			w.ignored++
			stale[at] = r.Host == earlierHost
			continue
		}
		w.blocks = slices.Delete(w.blocks, i, i+1)
		if len(w.blocks) == 0 {
			w.pendingEvents++
		}
	}
	s := contract.PortStatus{
		Status:            "ACTIVE",
		IgnoredReports:    w.ignored,
		PendingNovaEvents: w.pendingEvents,
		Refused:           refused,
		Stale:             stale,
	}
	for _, b := range w.blocks {
		s.Status = "DOWN"
		s.Waiting = append(s.Waiting, contract.Waiting{For: b})
	}
	if s.Status == "DOWN" && w.errorAfter > 0 {
		s.Status, s.LookAgainAt = w.deadlineStatus()
	}
	if w.project != "" {
		s.Attributes = &contract.Attributes{Project: w.project, Host: w.host, Resource: "port"}
	}
	s.Sentence = fmt.Sprintf("Port web-1 is %s, blocked by %v.", s.Status, w.blocks)
	return s, nil
}

// deadlineStatus returns the status of a blocked port and the time when that status changes. deadlineStatus
// simulates a database whose clock is behind the clock of the workflow, so the workflow's first read at the
// deadline still gets the status DOWN.
func (w *fakeRows) deadlineStatus() (string, *time.Time) {
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(w.errorAfter)
	}
	if w.reads < 3 {
		return "DOWN", &w.deadline
	}
	return "ERROR", nil
}

func (w *fakeRows) NotifyNova(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.novaFailures > 0 {
		w.novaFailures--
		return errors.New("connection refused")
	}
	read := w.pendingEvents
	if f := w.duringDelivery; f != nil {
		w.duringDelivery = nil
		w.mu.Unlock()
		f()
		w.mu.Lock()
	}
	w.delivered += read
	w.pendingEvents -= read
	return nil
}

func (w *fakeRows) NotifyWebhook(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.receiverFailures > 0 {
		w.receiverFailures--
		return errors.New("connection refused")
	}
	w.delivered++
	return nil
}

func (w *fakeRows) NotifyAgents(ctx context.Context, key string) error {
	return w.NotifyWebhook(ctx, key)
}

func (w *fakeRows) SyncFreepoolHost(ctx context.Context, key string) error {
	return w.NotifyWebhook(ctx, key)
}

func (w *fakeRows) TryEntry(context.Context, string) (contract.EntryProgress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.localAttempts++
	return w.attempt(), nil
}

func (w *fakeRows) MirrorEntry(context.Context, string) (contract.EntryProgress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.regularAttempts++
	p := w.attempt()
	if p.LastError != "" && p.State == "pending" {
		return p, errors.New(p.LastError)
	}
	return p, nil
}

func (w *fakeRows) Sweep(_ context.Context, since time.Time) (contract.SweepResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweptSince = append(w.sweptSince, since)
	swept := contract.SweepResult{RestartedWorkflows: len(w.sweptSince), Failures: w.sweepFailures}
	return swept, w.maintenanceError(activities.Sweep)
}

func (w *fakeRows) HealReservations(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healRounds++
	return w.maintenanceError(activities.HealReservations)
}

func (w *fakeRows) StartDueRuns(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runChecks++
	return w.maintenanceError(activities.StartDueRuns)
}

// maintenanceError returns the error with which an activity of the maintenance fails, if it is failingPart.
func (w *fakeRows) maintenanceError(activity string) error {
	if w.failingPart == activity {
		return w.partError
	}
	return nil
}

func (w *fakeRows) StepRun(context.Context, string) (contract.RunProgress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastStep != nil && len(w.runSteps) == 1 {
		<-w.lastStep
	}
	if w.controllerFailures > 0 {
		w.controllerFailures--
		return contract.RunProgress{}, errors.New("503 Service Unavailable")
	}
	if len(w.runSteps) == 0 {
		return contract.RunProgress{Idle: true, State: "idle"}, nil
	}
	p := w.runSteps[0]
	w.runSteps = w.runSteps[1:]
	return p, nil
}

func (w *fakeRows) attempt() contract.EntryProgress {
	p := contract.EntryProgress{State: w.entry}
	switch {
	case w.entry != "pending":
	case w.blockedReads > 0:
		w.blockedReads--
		p.Blocked, p.Waiting = true, []contract.Waiting{{For: "journal/1"}}
		for i := range w.moreBlockers {
			p.Waiting = append(p.Waiting, contract.Waiting{For: contract.JournalID(strconv.Itoa(1_000_000 + i))})
		}
	case w.controllerFailures > 0:
		w.controllerFailures--
		p.LastError = "503 Service Unavailable"
	case w.rejects:
		w.entry, p.State = "failed", "failed"
	default:
		w.entry, p.State = "completed", "completed"
	}
	return p
}

// newEnvironment returns a test environment with the fake activities.
func newEnvironment(w *fakeRows) *testsuite.TestWorkflowEnvironment {
	env := newTestEnvironment()
	activities.Register(env, w.functions())
	return env
}

// newTestEnvironment returns a test environment, which skips the time between two events.
func newTestEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(10 * time.Minute)
	env.SetWorkerOptions(
		worker.Options{WorkflowPanicPolicy: worker.FailWorkflow, DeadlockDetectionTimeout: time.Minute},
	)
	for _, queue := range contract.TaskQueues {
		workflows.Register(env, queue)
	}
	return env
}

// queryWhy sends the query "why" to the workflow and returns the result of the query.
func queryWhy(t *testing.T, env *testsuite.TestWorkflowEnvironment) contract.Why {
	t.Helper()
	var why contract.Why
	v, err := env.QueryWorkflow(contract.QueryWhy)
	if err == nil {
		err = v.Get(&why)
	}
	if err != nil {
		t.Errorf("send the query \"why\": got error %v, want none", err)
	}
	return why
}

// functions returns the fake activities by registered name.
func (w *fakeRows) functions() map[string]any {
	return map[string]any{
		activities.ApplyPortReports: w.ApplyPortReports,
		activities.NotifyNova:       w.NotifyNova,
		activities.NotifyAgents:     w.NotifyAgents,
		activities.NotifyWebhook:    w.NotifyWebhook,
		activities.SyncFreepoolHost: w.SyncFreepoolHost,
		activities.TryEntry:         w.TryEntry,
		activities.MirrorEntry:      w.MirrorEntry,
		activities.Sweep:            w.Sweep,
		activities.HealReservations: w.HealReservations,
		activities.StartDueRuns:     w.StartDueRuns,
		activities.StepRun:          w.StepRun,
	}
}
