package activities_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// While the circuit breaker is open, an attempt makes no request and does not change the entry's row. The row
// contains the error of the first attempt.
func TestMirrorEntry_OpenBreakerMakesNoRequest(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	client, err := odl.New(odl.Config{URL: m.controllerURL, Timeout: time.Hour, ProbeInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	m.acts = newActivities(activities.Options{Store: m.store, ODL: client})
	m.createNetworks(2)
	m.odl.InjectFaults(odltest.Fault{Status: 503, Times: 1000})
	for range 6 {
		m.endRetryDelays()
		m.drainJournal()
	}
	entries, err := m.store.Journal.JournalEntries(t.Context(),
		journalstore.EntryFilter{State: journal.Pending, Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if e.Attempt > 0 && e.LastError == "" {
			t.Errorf(
				"entry %d, after %d attempts: its last error is empty, want the error of the first attempt",
				e.Seq,
				e.Attempt,
			)
		}
	}
	countAttempts := func() (attempts int) {
		entries, err := m.store.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			attempts += e.Attempt
		}
		return attempts
	}
	m.endRetryDelays()
	attempts, requests := countAttempts(), len(m.odl.Requests())

	for range 50 {
		m.endRetryDelays() // the retry delay in the entry's row has ended too
		_, err = m.acts.MirrorEntry(t.Context(), fmt.Sprint(entries[0].Seq))
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.NonRetryable() || app.NextRetryDelay() <= 0 {
			t.Fatalf(
				"try an entry while the circuit breaker is open: want a retryable error with a delay, got %v",
				err,
			)
		}
	}

	if more := countAttempts() - attempts; len(m.odl.Requests()) != requests || more != 0 {
		t.Errorf(
			"50 attempts while the circuit breaker is open: made %d requests, want none; the attempts of the rows increased by %d, want 0",
			len(m.odl.Requests())-requests,
			more,
		)
	}
}

// Without a controller, entries are completed without a request, and runs such as a full sync fail. A
// controller that is configured later gets all objects from a full sync.
func TestNoController_CompletesEntriesWithoutRequests(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(2)
	controller := m.acts
	m.acts = newActivities(activities.Options{Store: m.store, ODL: activities.NoController{}})
	m.drainJournal()
	live, err := m.store.Journal.JournalState(t.Context())
	if err != nil ||
		live.Open[journal.Pending]+live.Open[journal.Processing]+live.Open[journal.Failed] != 0 ||
		len(m.odl.Requests()) != 0 {
		t.Errorf(
			"without a controller: got the open entries %+v, error %v and %d requests; want no entries, no error and no requests",
			live, err, len(m.odl.Requests()),
		)
	}
	for _, kind := range []string{contract.KeyFullSync, contract.KeyAudit, contract.KeyRecovery} {
		if r := m.finishRun(m.startRun(kind, 0)); r.State != journal.RunFailed ||
			r.Note != "no controller is configured" {
			t.Errorf(
				"run without a controller: got %q, want it failed because no controller is configured",
				r.Sentence(),
			)
		}
	}
	if err := m.acts.StartDueRuns(t.Context()); err != nil {
		t.Error(err)
	}

	m.acts = controller
	if err := m.acts.StartDueRuns(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync)
	if err != nil || r.ID == 0 {
		t.Fatal(r, err)
	}
	m.finishRun(r)
	m.checkInSync()
}

// Temporal terminates a workflow whose activity has a result of more than 2 MB.
func TestTryEntry_NamesALimitedNumberOfBlockers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(151)
	storetest.Exec(t, m.url, `insert into journal_dep (entry, waits_for) select 151, generate_series(1, 150) on conflict do nothing`)

	p, err := m.acts.TryEntry(t.Context(), "151")

	if err != nil || !p.Blocked || len(p.Waiting) != 100 || p.Waiting[0].For != "journal/1" {
		t.Errorf("entry with 150 blockers: got %d names in %+v, error %v; want the first 100",
			len(p.Waiting), p, err)
	}
	if !strings.Contains(p.Sentence, "and 149 more") {
		t.Errorf("entry with 150 blockers: got the sentence %q, want it to count all", p.Sentence)
	}
}
