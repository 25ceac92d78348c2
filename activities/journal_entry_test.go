package activities_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
)

// While the controller is left alone, an attempt costs the database nothing and the controller no request; the entry's row
// tells of the trouble since its first attempt.
func TestAttemptWhileTheControllerIsLeftAloneCostsNothing(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(2)
	m.odl.InjectFaults(odltest.Fault{Status: 503, Times: 1000})
	for range 6 {
		m.rested()
		m.drain()
	}
	entries, err := m.store.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{State: journal.Pending, Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if e.Attempt > 0 && e.LastError == "" {
			t.Errorf("entry %d does not tell of the trouble", e.Seq)
		}
	}
	all := func() (attempts int) {
		entries, err := m.store.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			attempts += e.Attempt
		}
		return attempts
	}
	m.rested()
	attempts, requests, begin := all(), len(m.odl.Requests()), time.Now()

	for range 50 {
		m.rested() // the row's own pause is over, too
		_, err = m.acts.MirrorEntry(t.Context(), fmt.Sprint(entries[0].Seq))
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.NonRetryable() || app.NextRetryDelay() <= 0 {
			t.Fatalf("%v", err)
		}
	}

	most := int(time.Since(begin)/time.Second) + 2 // one a second
	if probes := len(m.odl.Requests()) - requests; probes > most || all()-attempts > probes+1 {
		t.Errorf("50 attempts cost %d requests, at most %d are due, and %d attempts of rows", probes, most, all()-attempts)
	}
	m.odl.ClearFaults()
}

// Where there is no controller, the journal is a record: nothing waits, nothing is compared, and a controller that comes later
// gets everything.
func TestMirrorWithoutAControllerOnlyRecords(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(2)
	controller := m.acts
	m.acts = activities.New(activities.Options{Store: m.store, ODL: activities.NoController{}})
	m.drain()
	live, err := m.store.Journal.JournalState(t.Context())
	if err != nil || live.Live[journal.Pending]+live.Live[journal.Processing]+live.Live[journal.Failed] != 0 || len(m.odl.Requests()) != 0 {
		t.Errorf("%+v, %v; the controller saw %d requests", live, err, len(m.odl.Requests()))
	}
	for _, kind := range []string{contract.KeyFullSync, contract.KeyAudit, contract.KeyRecovery} {
		if r := m.finish(m.start(kind, 0)); r.State != journal.RunFailed || r.Note != "no controller is configured" {
			t.Errorf("%s", r.Sentence())
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
	m.finish(r)
	m.equal()
}
