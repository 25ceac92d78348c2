package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"berth/internal/contract"
	"berth/workflows"
)

// world stands in for the rows and neighbours behind the activities: it has memory and scripted faults, and the
// names of its methods are those of the activities.
type world struct {
	mu           sync.Mutex
	gone         bool
	host         string
	blocks       []string
	ignored      int64
	nova         int               // events recorded and not delivered
	told         int               // events delivered
	novaDown     int               // so many attempts at Nova fail
	meanwhile    func()            // happens once while Nova is told
	listenerDown int               // so many attempts at the webhook fail
	reports      int               // handed to the row
	heard        []contract.Report // the same, in order
	looks        int               // at the row
	patience     time.Duration     // after which a blocked port is in ERROR; 0 for none
	deadline     time.Time
	blockers     int    // looks at which the entry is still blocked
	entry        string // state of the entry
	odlDown      int    // so many attempts at the controller fail
	refuses      bool   // then it refuses the entry for good
	tries        int    // local attempts at the controller
	attempts     int    // regular ones
	swept        []time.Time
	watched      int
	hosts        int                    // rounds in which they were watched
	steps        []contract.RunProgress // to come; then there is nothing to do
}

func (w *world) SettlePort(_ context.Context, _ string, reports []contract.Report) (contract.PortStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if w.gone {
		return contract.PortStatus{Deleted: true, Status: "DELETED", PendingNovaEvents: w.nova}, nil
	}
	w.heard = append(w.heard, reports...)
	for _, r := range reports {
		w.reports++
		i := slices.Index(w.blocks, r.Entity)
		if i < 0 || r.Host != w.host {
			w.ignored++
			continue
		}
		w.blocks = slices.Delete(w.blocks, i, i+1)
		if len(w.blocks) == 0 {
			w.nova++
		}
	}
	s := contract.PortStatus{Status: "ACTIVE", IgnoredReports: w.ignored, PendingNovaEvents: w.nova}
	for _, b := range w.blocks {
		s.Status = "DOWN"
		s.Waiting = append(s.Waiting, contract.Waiting{For: b})
	}
	if s.Status == "DOWN" && w.patience > 0 {
		s.Status, s.LookAgainAt = w.overdue()
	}
	s.Sentence = fmt.Sprintf("Port web-1 is %s, blocked by %v.", s.Status, w.blocks)
	return s, nil
}

// overdue is the status of a blocked port, and when it changes. The row's clock is behind: the first look at the
// deadline is too early.
func (w *world) overdue() (string, *time.Time) {
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(w.patience)
	}
	if w.looks < 3 {
		return "DOWN", &w.deadline
	}
	return "ERROR", nil
}

func (w *world) NotifyNova(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.novaDown > 0 {
		w.novaDown--
		return errors.New("connection refused")
	}
	read := w.nova
	if f := w.meanwhile; f != nil {
		w.meanwhile = nil
		w.mu.Unlock()
		f()
		w.mu.Lock()
	}
	w.told += read
	w.nova -= read
	return nil
}

func (w *world) TellLease(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listenerDown > 0 {
		w.listenerDown--
		return errors.New("connection refused")
	}
	w.told++
	return nil
}

func (w *world) TellAgents(ctx context.Context, key string) error { return w.TellLease(ctx, key) }

func (w *world) PoolHost(ctx context.Context, key string) error { return w.TellLease(ctx, key) }

func (w *world) TryEntry(context.Context, string) (contract.EntryProgress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	return w.mirror(), nil
}

func (w *world) MirrorEntry(context.Context, string) (contract.EntryProgress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	p := w.mirror()
	if p.LastError != "" && p.State == "pending" {
		return p, errors.New(p.LastError)
	}
	return p, nil
}

func (w *world) Sweep(_ context.Context, since time.Time) (contract.SweepResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept = append(w.swept, since)
	return contract.SweepResult{RestartedWorkflows: len(w.swept)}, nil
}

func (w *world) WatchHosts(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts++
	return nil
}

func (w *world) WatchController(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched++
	return nil
}

func (w *world) StepRun(context.Context, string) (contract.RunProgress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.steps) == 0 {
		return contract.RunProgress{Idle: true, State: "idle"}, nil
	}
	p := w.steps[0]
	w.steps = w.steps[1:]
	return p, nil
}

func (w *world) mirror() contract.EntryProgress {
	p := contract.EntryProgress{State: w.entry}
	switch {
	case w.entry != "pending":
	case w.blockers > 0:
		w.blockers--
		p.Blocked, p.Waiting = true, []contract.Waiting{{For: "journal/1"}}
	case w.odlDown > 0:
		w.odlDown--
		p.LastError = "503 Service Unavailable"
	case w.refuses:
		w.entry, p.State = "failed", "failed"
	default:
		w.entry, p.State = "completed", "completed"
	}
	return p
}

// environment runs a workflow on a stepped clock, with the world behind its activities.
func environment(w *world) *testsuite.TestWorkflowEnvironment {
	env := steppedClock()
	env.RegisterActivity(w)
	return env
}

// steppedClock runs workflows with the time between two events skipped.
func steppedClock() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(2 * time.Minute)
	env.SetWorkerOptions(worker.Options{WorkflowPanicPolicy: worker.FailWorkflow, DeadlockDetectionTimeout: time.Minute})
	for _, queue := range []string{contract.PortQueue, contract.LeaseQueue, contract.JournalQueue} {
		workflows.Register(env, queue)
	}
	return env
}

// ask sends the query `why`.
func ask(t *testing.T, env *testsuite.TestWorkflowEnvironment) contract.Why {
	t.Helper()
	var why contract.Why
	v, err := env.QueryWorkflow(contract.QueryWhy)
	if err == nil {
		err = v.Get(&why)
	}
	if err != nil {
		t.Errorf("query why: %v", err)
	}
	return why
}
