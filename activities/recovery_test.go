package activities_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func (m *mirrorFixture) failedEntries() []journal.Entry {
	m.Helper()
	entries, err := m.store.Journal.JournalEntries(m.Context(),
		journalstore.EntryFilter{State: journal.Failed, Limit: 100})
	if err != nil {
		m.Fatal(err)
	}
	return entries
}

func TestRecovery_RetriesFailedParentAndUnblocksItsChildren(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(1)
	m.failEntries("network", 400)
	if f := m.failedEntries(); len(f) != 1 || f[0].Seq != 1 || m.journalEntry(3).State != journal.Pending {
		t.Fatalf(
			"create a network that the controller rejects: got the failed entries %v and the child %s; want only entry 1 failed and the child pending",
			f,
			m.journalEntry(3).State,
		)
	}

	r := m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.drainJournal()
	if r.State != journal.RunDone || len(m.failedEntries()) != 0 {
		t.Errorf(
			"state after the recovery: %s; failed entries: %v; want a successful end and no failed entries",
			r.Sentence(),
			m.failedEntries(),
		)
	}
	_, _, decisions, err := m.store.Journal.JournalEntry(t.Context(), 1)
	if err != nil || len(decisions) != 1 || decisions[0].Action != "recover" ||
		decisions[0].Reason != "the controller lacks it" {
		t.Errorf(
			"decisions of entry 1: %+v, error %v; want one decision: recover, because the controller lacks the object",
			decisions,
			err,
		)
	}
	m.checkInSync()
}

// The controller has lost a trunk, and also the objects that the trunk refers to. An update of the trunk
// fails until these objects are recreated.
func TestRecovery_RecreatesMissingParentsFirst(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createEveryType(m.createNetworks(1)[0])
	m.drainJournal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	entries, err := m.store.Journal.JournalEntries(t.Context(),
		journalstore.EntryFilter{Type: "trunk", Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	m.recordChanges(
		journal.Change{Object: entries[0].Object, Operation: journal.Update, Data: entries[0].Data},
	)
	for range 6 {
		m.endRetryDelays()
		m.drainJournal()
	}
	if f := m.failedEntries(); len(f) != 1 {
		t.Fatalf("failed entries: %v; want only the update of the trunk", f)
	}

	r := m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.drainJournal()
	if r.State != journal.RunDone || len(m.failedEntries()) != 0 {
		t.Errorf(
			"state after the recovery: %s; failed entries: %v; want a successful end and no failed entries",
			r.Sentence(),
			m.failedEntries(),
		)
	}
	if got := m.odl.Record("trunk", entries[0].Object.ID); got.Object == nil {
		t.Error("the recovery did not recreate the trunk in the controller")
	}
	if v := m.odl.Violations(); len(v) > 0 {
		t.Errorf("the controller received requests in the wrong order: %s", strings.Join(v, "; "))
	}
}

// The controller has lost the parent of a new object, so it answers every create of the object with the
// status 442.
func TestRecovery_RecreatesParentOfPendingEntry(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	const group, rule = "7d3c1c1e-7d1b-4d6a-b6f4-000000000001", "7d3c1c1e-7d1b-4d6a-b6f4-000000000002"
	m.recordChanges(newChange(journal.Create, "security_group", group, nil))
	m.drainJournal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	m.recordChanges(
		newChange(journal.Create, "security_group_rule", rule, map[string]any{"security_group_id": group}),
	)
	for range 8 {
		m.endRetryDelays()
		m.drainJournal()
	}
	if e := m.journalEntry(2); e.State != journal.Pending || !strings.Contains(e.LastError, "442") {
		t.Fatalf("entry 2 is %+v, want it pending because of a missing parent", e)
	}

	m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.endRetryDelays()
	m.drainJournal()
	m.checkInSync()
}

func TestRecovery_UnrecoverableEntryDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(3)
	m.failEntries("network", 400)
	first := m.failedEntries()[0]
	m.odl.InjectFaults(odltest.Fault{
		Method: "GET",
		ID:     first.Object.ID,
		Status: 500,
		Times:  1000,
	})

	r := m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.odl.ClearFaults()
	m.drainJournal()
	if f := m.failedEntries(); r.State != journal.RunDone || len(f) != 1 || f[0].Seq != first.Seq ||
		!strings.Contains(r.Note, "could not be recovered") {
		t.Fatalf(
			"state after the recovery: %s; failed entries: %v; want a successful end, and only the entry whose object cannot be read",
			r.Sentence(),
			f,
		)
	}
	m.finishRun(m.startRun(contract.KeyRecovery, 0))
	m.drainJournal()
	m.checkInSync()
}

func TestRecovery_LockedObjectDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(2)
	m.failEntries("network", 400)
	first := m.failedEntries()[0]
	rival := storetest.NewRival(t, m.url)
	rival.Do(`begin`)
	rival.Do(fmt.Sprintf(`select from network where id = '%s' for update`, first.Object.ID))

	r := m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.drainJournal()
	if f := m.failedEntries(); r.State != journal.RunDone || len(f) != 1 || f[0].Seq != first.Seq ||
		!strings.Contains(r.Note, "could not be recovered") {
		t.Fatalf(
			"state after the recovery: %s; failed entries: %v; want a successful end, and only the entry whose network is locked",
			r.Sentence(),
			f,
		)
	}
	rival.Do(`rollback`)
	m.finishRun(m.startRun(contract.KeyRecovery, 0))
	m.drainJournal()
	m.checkInSync()
}

// A network is updated twice after its create has failed. The recovery keeps the order: the create, then both
// updates.
func TestRecovery_KeepsOrderOfLaterEntries(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	n := m.createNetworks(1)[0]
	m.failEntries("network", 400)
	for _, name := range []string{"b", "c"} {
		if _, err := m.store.Network.UpdateNetwork(t.Context(), n.ID, nameChange(name), nil); err != nil {
			t.Fatal(err)
		}
	}

	m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.drainJournal()
	if got := m.odl.Record("network", n.ID.String()); got.Creates != 1 || got.Updates != 2 ||
		got.Object["name"] != "c" {
		t.Errorf(
			"requests for the network after the recovery: got %+v; want 1 create, 2 updates and the name c",
			got,
		)
	}
	m.checkInSync()
}

func TestStartDueRuns_StartsOneRecoveryPerInterval(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.finishRun(m.startRun(contract.KeyFullSync, 0))
	startDueRuns := func() int64 {
		if err := m.acts.StartDueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyRecovery)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	if id := startDueRuns(); id != 0 {
		t.Fatalf("recovery %d was started although no entry has failed", id)
	}
	m.createNetworks(1)
	m.failEntries("network", 400)
	id := startDueRuns()
	if id == 0 {
		t.Fatal("no recovery was started although an entry has failed")
	}
	m.finishRun(journal.Run{ID: id, Kind: contract.KeyRecovery})
	m.failEntries("network", 400)
	if again := startDueRuns(); again != 0 {
		t.Errorf("recovery %d was started within the interval after the last one", again)
	}
}
