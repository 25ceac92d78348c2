package activities_test

import (
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/temporal"

	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store"
)

// While the controller is left alone, an attempt costs the database nothing and the controller no request; the entry's row
// tells of the trouble since its first attempt.
func TestAttemptWhileTheControllerIsLeftAloneCostsNothing(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(2)
	m.odl.Inject(odltest.Fault{Status: 503, Times: 1000})
	for range 6 {
		m.rested()
		m.drain()
	}
	entries, err := m.store.JournalEntries(t.Context(), store.EntryFilter{State: journal.Pending, Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if e.Attempt > 0 && e.LastError == "" {
			t.Errorf("entry %d does not tell of the trouble", e.Seq)
		}
	}
	all := func() (attempts int) {
		entries, err := m.store.JournalEntries(t.Context(), store.EntryFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			attempts += e.Attempt
		}
		return attempts
	}
	m.rested()
	attempts, requests := all(), len(m.odl.Log())

	for range 50 {
		_, err = m.acts.MirrorEntry(t.Context(), fmt.Sprint(entries[0].Seq))
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.NonRetryable() || app.NextRetryDelay() <= 0 {
			t.Fatalf("%v", err)
		}
	}

	if probes := len(m.odl.Log()) - requests; probes > 5 || all()-attempts > probes+1 {
		t.Errorf("50 attempts cost %d requests and %d attempts of rows", probes, all()-attempts)
	}
	m.odl.Heal()
}
