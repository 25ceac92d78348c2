package activities_test

import (
	"errors"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// While the journal is paused, no process sends anything, and every entry says who paused the journal
// and why. After an administrator has resumed the journal, all entries are sent in the right order.
func TestPause_SendsNothingUntilResumed(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(1)
	if err := m.store.Journal.Pause(t.Context(), "ann", "upgrade of the controller"); err != nil {
		t.Fatal(err)
	}
	m.createNetworks(2)
	m.drainJournal()
	m.acts = m.newActivities() // another process
	m.drainJournal()
	p, err := m.acts.MirrorEntry(t.Context(), "2")
	if err != nil || !p.Blocked || !strings.Contains(p.Sentence, "waits for entry 1") ||
		strings.Contains(p.Sentence, "paused") {
		t.Errorf(
			"progress of entry 2 while the journal is paused: got %+v, error %v; want it blocked by entry 1 alone",
			p,
			err,
		)
	}
	for _, key := range []string{"1", "5"} {
		p, err := m.acts.MirrorEntry(t.Context(), key)
		if err != nil || !p.Blocked || p.State != string(journal.Pending) ||
			!strings.Contains(p.Sentence, "the journal is paused by ann since ") ||
			!strings.Contains(p.Sentence, "upgrade of the controller") {
			t.Errorf(
				"progress of entry %s while the journal is paused: got %+v, error %v; want it pending, blocked and explained",
				key, p, err,
			)
		}
	}
	since, err := m.store.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if claimed, err := m.store.Journal.ClaimBacklog(t.Context(), since, 10, 1); err != nil ||
		len(claimed) != 0 {
		t.Errorf("claim the backlog while the journal is paused: got %d entries, error %v; want none",
			len(claimed), err)
	}
	audited := m.startRun(contract.KeyAudit, 0)
	if p, err := m.stepRun(contract.KeyAudit); err != nil || p.Delay == 0 ||
		!strings.Contains(p.Sentence, "paused by ann") {
		t.Errorf("step of an audit while the journal is paused: got %+v, error %v; want that it waits",
			p, err)
	}
	if err := m.acts.StartDueRuns(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync); err != nil || r.ID != 0 {
		t.Errorf("due full sync while the journal is paused: got run %d, error %v; want none", r.ID, err)
	}
	if n := len(m.odl.Requests()); n != 0 {
		t.Errorf("while the journal is paused: the controller got %d requests, want 0", n)
	}
	if err := m.store.Journal.Pause(t.Context(), "bob", ""); !errors.Is(err, db.ErrConflict) {
		t.Errorf("pause a paused journal: got error %v, want db.ErrConflict", err)
	}

	// as if Temporal had accepted all notes, so that every workflow runs and waits
	storetest.Exec(t, m.url, `delete from note`)
	if err := m.store.Journal.Resume(t.Context(), "bob", "done"); err != nil {
		t.Fatal(err)
	}
	if due, err := m.store.Outbox.Backlog(t.Context()); err != nil || due.Notes != 3 {
		t.Errorf(
			"due notes after the resumption: got %d, error %v; want one for each of the 3 networks",
			due.Notes,
			err,
		)
	}
	m.drainJournal()
	m.finishRun(audited)
	m.checkInSync()
	if err := m.store.Journal.Resume(t.Context(), "bob", ""); !errors.Is(err, db.ErrConflict) {
		t.Errorf("resume a journal that is not paused: got error %v, want db.ErrConflict", err)
	}
	audit, err := m.store.Journal.PauseDecisions(t.Context(), 10)
	if err != nil || len(audit) != 2 || audit[0].Action != "resume" || audit[0].Actor != "bob" ||
		audit[1].Action != "pause" ||
		audit[1].Reason != "upgrade of the controller" {
		t.Errorf(
			"audit of the pauses: got %+v, error %v; want the resumption by bob and the pause by ann",
			audit,
			err,
		)
	}
}
