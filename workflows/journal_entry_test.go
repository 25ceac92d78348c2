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

func TestJournalEntry_HappyPathIsOneLocalActivity(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "pending"}
	env := newEnvironment(w)

	runEntry(env)

	var p contract.EntryProgress
	if err := env.GetWorkflowResult(&p); err != nil || p.State != "completed" {
		t.Errorf("entry whose first attempt succeeds: got the result %+v, error %v; want completed", p, err)
	}
	if w.localAttempts != 1 || w.regularAttempts != 0 {
		t.Errorf(
			"entry whose first attempt succeeds: got %d local and %d regular attempts, want 1 and 0",
			w.localAttempts,
			w.regularAttempts,
		)
	}
}

func TestJournalEntry_RetriesDuringControllerOutage(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "pending", controllerFailures: 8}
	env := newEnvironment(w)
	var why contract.Why
	schedule(env, time.Second, func() { why = queryWhy(t, env) })

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("end of the workflow: got entry state %s, error %v; want completed and no error",
			w.entry, err)
	}
	if why.State != "pending" || why.LastError != "503 Service Unavailable" {
		t.Errorf("query \"why\" during the outage: got %+v, want the state pending with the error 503", why)
	}
	if w.regularAttempts < 8 {
		t.Errorf("attempts of an entry during an outage: got %d regular activities, want at least 8",
			w.regularAttempts)
	}
}

func TestJournalEntry_BlockedEntryWaitsWithoutPolling(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "pending", blockedReads: 1}
	env := newEnvironment(w)
	schedule(env, time.Hour, func() {
		if why := queryWhy(t, env); len(why.Waiting) != 1 || why.Waiting[0].For != "journal/1" {
			t.Errorf("query \"why\" of a blocked entry: got %+v, want the entry to wait for journal/1", why)
		}
		if w.localAttempts != 1 {
			t.Errorf("attempts of a blocked entry within an hour: got %d, want 1", w.localAttempts)
		}
		env.SignalWorkflow(contract.SignalChanged, nil)
	})

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("end of the workflow: got entry state %s, error %v; want completed and no error",
			w.entry, err)
	}
}

func TestJournalEntry_FailedEntryWaitsForAdministrator(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "failed"}
	env := newEnvironment(w)
	schedule(env, time.Hour, func() {
		if why := queryWhy(t, env); why.State != "failed" {
			t.Errorf("query \"why\" of a failed entry: got %+v, want the state failed", why)
		}
		w.mu.Lock()
		w.entry = "pending"
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
	})

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("end of the workflow: got entry state %s, error %v; want completed and no error",
			w.entry, err)
	}
}

func TestJournalEntry_CompletedEntryIsNotReadAgain(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "pending", controllerFailures: 3}
	env := newEnvironment(w)

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" || w.localAttempts != 1 ||
		w.regularAttempts != 3 {
		t.Errorf(
			"end of the workflow: got entry state %s after %d local and %d regular attempts, error %v; want completed after 1 local and 3 regular attempts",
			w.entry, w.localAttempts, w.regularAttempts, err,
		)
	}
}

// In the answer to the query "why", the error of the latest attempt replaces the error of the attempt before
// it.
func TestJournalEntry_FailedEntryShowsNoEarlierError(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "pending", controllerFailures: 4, rejects: true}
	env := newEnvironment(w)
	schedule(env, time.Hour, func() {
		if why := queryWhy(t, env); why.State != "failed" || why.LastError != "" {
			t.Errorf(
				"query \"why\" of a failed entry: got %+v, want the state failed and no error of an earlier attempt",
				why,
			)
		}
		w.mu.Lock()
		w.entry, w.rejects = "pending", false
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
	})

	runEntry(env)

	if err := env.GetWorkflowError(); err != nil || w.entry != "completed" {
		t.Errorf("end of the workflow: got entry state %s, error %v; want completed and no error",
			w.entry, err)
	}
}
