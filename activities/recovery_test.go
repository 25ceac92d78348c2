package activities_test

import (
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
)

func failed(m *mirror) []journal.Entry {
	m.Helper()
	entries, err := m.store.Journal.JournalEntries(m.Context(), journalstore.EntryFilter{State: journal.Failed, Limit: 100})
	if err != nil {
		m.Fatal(err)
	}
	return entries
}

func TestRecoveryReleasesAFailedParentAndWhoWaitsForIt(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(1)
	m.fail("network", 400)
	if f := failed(m); len(f) != 1 || f[0].Seq != 1 || m.entry(3).State != journal.Pending {
		t.Fatalf("failed %v, its child is %s", f, m.entry(3).State)
	}

	r := m.finish(m.start(contract.KeyRecovery, 0))

	m.drain()
	if r.State != journal.RunDone || len(failed(m)) != 0 {
		t.Errorf("%s; failed: %v", r.Sentence(), failed(m))
	}
	_, _, decisions, err := m.store.Journal.JournalEntry(t.Context(), 1)
	if err != nil || len(decisions) != 1 || decisions[0].Action != "recover" || decisions[0].Reason != "the controller lacks it" {
		t.Errorf("the audit says %+v, %v", decisions, err)
	}
	m.equal()
}

// The controller has lost a port with all that it needs: the change of the port fails, and its parents come back first.
func TestRecoveryBringsMissingParentsBackFirst(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.everyType(m.grow(1)[0])
	m.drain()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	entries, err := m.store.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "trunk", Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	m.foreign(journal.Change{Object: entries[0].Object, Operation: journal.Update, Data: entries[0].Data})
	for range 6 {
		m.rested()
		m.drain()
	}
	if f := failed(m); len(f) != 1 {
		t.Fatalf("want the update to fail, got %v", f)
	}

	r := m.finish(m.start(contract.KeyRecovery, 0))

	m.drain()
	if r.State != journal.RunDone || len(failed(m)) != 0 {
		t.Errorf("%s; failed: %v", r.Sentence(), failed(m))
	}
	if got := m.odl.Record("trunk", entries[0].Object.ID); got.Object == nil {
		t.Error("the trunk is not back")
	}
	if v := m.odl.Violations(); len(v) > 0 {
		t.Errorf("the order was broken: %s", strings.Join(v, "; "))
	}
}

// The controller says 442 for ever because it has lost the parent of what is new.
func TestRecoveryHelpsAnEntryThatWaitsForALostParent(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	const group, rule = "7d3c1c1e-7d1b-4d6a-b6f4-000000000001", "7d3c1c1e-7d1b-4d6a-b6f4-000000000002"
	m.foreign(object(journal.Create, "security_group", group, nil))
	m.drain()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	m.foreign(object(journal.Create, "security_group_rule", rule, map[string]any{"security_group_id": group}))
	for range 8 {
		m.rested()
		m.drain()
	}
	if e := m.entry(2); e.State != journal.Pending || e.LastError != journal.ReasonMissingParent {
		t.Fatalf("%+v", e)
	}

	m.finish(m.start(contract.KeyRecovery, 0))

	m.rested()
	m.drain()
	m.equal()
}

func TestRecoveryIsolatesEntriesThatCannotBeMended(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(3)
	m.fail("network", 400)
	first := failed(m)[0]
	m.odl.InjectFaults(odltest.Fault{Method: "GET", ID: first.Object.ID, Status: 500, Times: 1000})

	r := m.finish(m.start(contract.KeyRecovery, 0))

	m.odl.ClearFaults()
	m.drain()
	if f := failed(m); r.State != journal.RunDone || len(f) != 1 || f[0].Seq != first.Seq || !strings.Contains(r.Note, "could not be recovered") {
		t.Fatalf("%s; failed: %v", r.Sentence(), f)
	}
	m.finish(m.start(contract.KeyRecovery, 0))
	m.drain()
	m.equal()
}

// A create whose object was changed and deleted while it had failed: what follows it still comes in its order.
func TestRecoveryKeepsTheOrderOfWhatCameLater(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	n := m.grow(1)[0]
	m.fail("network", 400)
	for _, name := range []string{"b", "c"} {
		if _, err := m.store.Network.UpdateNetwork(t.Context(), n.ID, rename(name), nil); err != nil {
			t.Fatal(err)
		}
	}

	m.finish(m.start(contract.KeyRecovery, 0))

	m.drain()
	if got := m.odl.Record("network", n.ID.String()); got.Creates != 1 || got.Updates != 2 || got.Object["name"] != "c" {
		t.Errorf("%+v", got)
	}
	m.equal()
}

func TestWatchStartsARecoveryOnce(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.finish(m.start(contract.KeyFullSync, 0))
	watch := func() int64 {
		if err := m.acts.StartDueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyRecovery)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	if id := watch(); id != 0 {
		t.Fatalf("recovery %d of nothing", id)
	}
	m.grow(1)
	m.fail("network", 400)
	id := watch()
	if id == 0 {
		t.Fatal("no recovery")
	}
	m.finish(journal.Run{ID: id, Kind: contract.KeyRecovery})
	m.fail("network", 400)
	if again := watch(); again != 0 {
		t.Errorf("another one at once: %d", again)
	}
}
