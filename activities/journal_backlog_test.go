package activities_test

import (
	"fmt"
	"testing"

	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// outage lets n families gather while the controller is away, as long ago as makes no difference to anybody.
func (m *mirror) outage(n int) {
	m.Helper()
	m.odl.InjectFaults(odltest.Fault{Break: odltest.BreakReset, Times: 1_000_000})
	m.grow(n)
	m.drain()
	m.odl.ClearFaults()
	storetest.Exec(m, m.url, `update journal_entry set created_at = created_at - interval '1 h', looked_at = looked_at - interval '1 h'`)
}

// live counts the entries that the controller has still to see.
func (m *mirror) live() (n int64) {
	m.Helper()
	j, err := m.store.Journal.JournalState(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	for _, of := range j.Live {
		n += int64(of)
	}
	return n
}

// One entry that comes back by itself brings all others along, in order, with as few requests as there are entries.
func TestTheFirstThatSucceedsBringsAlongWhatHasGathered(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.outage(30)
	storetest.Exec(t, m.url, `update journal_entry set retry_at = null where seq = (select max(seq) from journal_entry where object_type = 'network')`)
	networks, err := m.store.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "network", Newest: true, Limit: 1})
	if err != nil || len(networks) != 1 {
		t.Fatal(networks, err)
	}
	entries, before := m.live(), len(m.odl.Requests())

	m.acts = m.anew()
	p, err := m.acts.MirrorEntry(t.Context(), fmt.Sprint(networks[0].Seq))

	if err != nil || p.State != string(journal.Completed) {
		t.Fatalf("%+v, %v", p, err)
	}
	if n := m.live(); n != 0 {
		t.Errorf("%d of %d entries still wait", n, entries)
	}
	posts := 0
	for _, s := range m.odl.Requests()[before:] {
		if s.Method == "POST" && s.Applied {
			posts++
		}
	}
	if int64(posts) != entries {
		t.Errorf("%d objects of %d entries", posts, entries)
	}
	m.equal()
}
