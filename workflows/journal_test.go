package workflows_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"berth/internal/contract"
)

func runEntry(env *testsuite.TestWorkflowEnvironment) {
	env.ExecuteWorkflow(contract.JournalEntry, contract.Input{Key: "7"})
}

func TestEntryOnTheHappyPathIsOneLocalActivity(t *testing.T) {
	t.Parallel()
	w := &world{entry: "pending"}
	env := environment(w)

	runEntry(env)

	var p contract.EntryProgress
	if err := env.GetWorkflowResult(&p); err != nil || p.State != "completed" {
		t.Errorf("result %+v, error %v", p, err)
	}
	if w.tries != 1 || w.attempts != 0 {
		t.Errorf("%d local and %d regular attempts, want 1 and 0", w.tries, w.attempts)
	}
}

func TestEntryOutlastsAControllerOutage(t *testing.T) {
	t.Parallel()
	w := &world{entry: "pending", odlDown: 8}
	env := environment(w)
	var why contract.Why
	after(env, time.Second, func() { why = ask(t, env) })

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("entry %s, error %v", w.entry, err)
	}
	if why.State != "pending" || why.LastError != "503 Service Unavailable" {
		t.Errorf("while the controller was away: %+v", why)
	}
	if w.attempts < 8 {
		t.Errorf("only %d attempts were visible ones", w.attempts)
	}
}

func TestBlockedEntryWaitsForItsBlockerWithoutPolling(t *testing.T) {
	t.Parallel()
	w := &world{entry: "pending", blockers: 1}
	env := environment(w)
	after(env, time.Hour, func() {
		if why := ask(t, env); len(why.Waiting) != 1 || why.Waiting[0].For != "journal/1" {
			t.Errorf("want it to wait for journal/1, got %+v", why)
		}
		if w.tries != 1 {
			t.Errorf("%d looks during an hour of waiting, want 1", w.tries)
		}
		env.SignalWorkflow(contract.SignalChanged, nil)
	})

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("entry %s, error %v", w.entry, err)
	}
}

func TestFailedEntryWaitsForAHuman(t *testing.T) {
	t.Parallel()
	w := &world{entry: "failed"}
	env := environment(w)
	after(env, time.Hour, func() {
		if why := ask(t, env); why.State != "failed" {
			t.Errorf("want failed, got %+v", why)
		}
		w.mu.Lock()
		w.entry = "pending"
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
	})

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("entry %s, error %v", w.entry, err)
	}
}

func TestEntryThatAnAttemptCompletedIsNotLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := &world{entry: "pending", odlDown: 3}
	env := environment(w)

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" || w.tries != 1 || w.attempts != 3 {
		t.Errorf("entry %s after %d local and %d regular attempts, error %v; want 1 and 3", w.entry, w.tries, w.attempts, err)
	}
}

// What an attempt came to replaces what the one before it had to say.
func TestFailedEntrySaysNothingOfTheAttemptsBefore(t *testing.T) {
	t.Parallel()
	w := &world{entry: "pending", odlDown: 4, refuses: true}
	env := environment(w)
	after(env, time.Hour, func() {
		if why := ask(t, env); why.State != "failed" || why.LastError != "" {
			t.Errorf("%+v", why)
		}
		w.mu.Lock()
		w.entry, w.refuses = "pending", false
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
	})

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("entry %s, error %v", w.entry, err)
	}
}
