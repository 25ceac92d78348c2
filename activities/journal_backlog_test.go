package activities_test

import (
	"fmt"
	"testing"

	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// createDuringOutage creates n networks while the controller is unreachable, and makes their entries an hour old.
func (m *mirrorFixture) createDuringOutage(n int) {
	m.Helper()
	m.odl.InjectFaults(odltest.Fault{Break: odltest.BreakReset, Times: 1_000_000})
	m.createNetworks(n)
	m.drainJournal()
	m.odl.ClearFaults()
	storetest.Exec(m, m.url, `update journal_entry set created_at = created_at - interval '1 h', looked_at = looked_at - interval '1 h'`)
}

// openEntries counts the entries that are not completed.
func (m *mirrorFixture) openEntries() (n int64) {
	m.Helper()
	j, err := m.store.Journal.JournalState(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	for _, count := range j.Open {
		n += int64(count)
	}
	return n
}

// After an outage, the first entry that succeeds sends all others too, in order, with one request for each.
func TestMirrorEntry_DrainsBacklogAfterOutage(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createDuringOutage(30)
	storetest.Exec(t, m.url, `update journal_entry set retry_at = null where seq = (select max(seq) from journal_entry where object_type = 'network')`)
	networks, err := m.store.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "network", Newest: true, Limit: 1})
	if err != nil || len(networks) != 1 {
		t.Fatal(networks, err)
	}
	entries, before := m.openEntries(), len(m.odl.Requests())

	m.acts = m.newActivities()
	p, err := m.acts.MirrorEntry(t.Context(), fmt.Sprint(networks[0].Seq))

	if err != nil || p.State != string(journal.Completed) {
		t.Fatalf("mirror the first entry after the outage: got %+v, error %v; want success", p, err)
	}
	if n := m.openEntries(); n != 0 {
		t.Errorf("after the first entry succeeded, %d of %d entries are still open, want 0", n, entries)
	}
	posts := 0
	for _, s := range m.odl.Requests()[before:] {
		if s.Method == "POST" && s.Applied {
			posts++
		}
	}
	if int64(posts) != entries {
		t.Errorf("the controller applied %d creates, want %d", posts, entries)
	}
	m.checkInSync()
}
