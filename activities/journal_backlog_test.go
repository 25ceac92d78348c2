package activities_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// createDuringOutage creates n networks while the controller is unreachable, and makes their entries an hour
// old.
func (m *mirrorFixture) createDuringOutage(n int) {
	m.Helper()
	m.odl.InjectFaults(odltest.Fault{Break: odltest.BreakReset, Times: 1_000_000})
	m.createNetworks(n)
	m.drainJournal()
	m.odl.ClearFaults()
	storetest.Exec(m, m.url,
		`update journal_entry set created_at = created_at - interval '1 h', looked_at = looked_at - interval '1 h'`)
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

// mirrorEntry calls MirrorEntry until it does not ask for a retry any more, and returns the number of calls.
// The entry must be completed then.
func (m *mirrorFixture) mirrorEntry(seq int64) (calls int) {
	m.Helper()
	for {
		calls++
		p, err := m.acts.MirrorEntry(m.Context(), fmt.Sprint(seq))
		retry := new(temporal.ApplicationError)
		switch {
		case errors.As(err, &retry) && strings.Contains(err.Error(), "the entry is completed"):
			if retry.NextRetryDelay() != time.Millisecond {
				m.Fatalf("mirror entry %d: got a retry after %s, want one at once",
					seq, retry.NextRetryDelay())
			}
		case err != nil || p.State != string(journal.Completed):
			m.Fatalf("mirror entry %d: got %+v, error %v; want it completed", seq, p, err)
		default:
			return calls
		}
	}
}

// A drain that does not finish in the time of one attempt continues with the next attempt of the same
// activity, because no other activity may be left that could continue the drain. The activity of an entry
// that another workflow has sent continues the drain, too.
func TestMirrorEntry_ContinuesDrainUntilNoBacklogIsLeft(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createDuringOutage(40)
	storetest.Exec(t, m.url, `update journal_entry set retry_at = null where seq = 1`)
	storetest.Exec(t, m.url, `delete from note`)
	m.acts = m.newActivities()
	m.acts.Timeouts.Drain = 0

	calls := m.mirrorEntry(1)

	if n := m.openEntries(); n != 0 || calls < 4 {
		t.Errorf(
			"mirror the first entry after the outage: %d entries are open after %d calls, want none after several calls",
			n,
			calls,
		)
	}
	m.createDuringOutage(40)
	m.acts = m.newActivities()
	m.acts.Timeouts.Drain = 0
	if calls := m.mirrorEntry(2); m.openEntries() != 0 || calls < 4 {
		t.Errorf(
			"mirror an entry that another workflow has sent: %d entries are open after %d calls, want none after several calls",
			m.openEntries(),
			calls,
		)
	}
	m.checkInSync()
}

// After an outage, the first entry that succeeds sends all others too, in order, with one request for each.
func TestMirrorEntry_DrainsBacklogAfterOutage(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createDuringOutage(30)
	storetest.Exec(t, m.url,
		`update journal_entry set retry_at = null where seq = (select max(seq) from journal_entry where object_type = 'network')`)
	networks, err := m.store.Journal.JournalEntries(t.Context(),
		journalstore.EntryFilter{Type: "network", Newest: true, Limit: 1})
	if err != nil || len(networks) != 1 {
		t.Fatal(networks, err)
	}
	entries, before := m.openEntries(), len(m.odl.Requests())

	m.acts = m.newActivities()
	m.mirrorEntry(networks[0].Seq)

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
