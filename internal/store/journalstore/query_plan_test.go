package journalstore_test

import (
	"testing"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// TestPlan_EntryReadsFewRowsOfTheJournal fails if the creation, the attempt or the outcome of an entry, or a
// page of entries, reads the journal in full: the journal keeps completed entries.
func TestPlan_EntryReadsFewRowsOfTheJournal(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, state, attempt, project, name, taken_at, finished_at)
		select 'port', 'p' || n, 'create', '{}', array['network/' || n % 100], 'completed', 1, '', '', now(), now()
		from generate_series(1, 10000) n`)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	tables := []string{"journal_entry", "journal_dep"}
	before := storetest.ReadsOfTables(t, watch, tables...)
	s := storetest.Open(t, url)
	const repeats = 8 // so many that PostgreSQL uses generic plans for prepared statements
	for range repeats {
		project, name := "p", "n"
		made, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project, Name: &name}})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := s.Journal.JournalEntries(t.Context(),
			journalstore.EntryFilter{Object: made[0].ID.String(), Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := s.Journal.ClaimEntry(t.Context(), entries[0].Seq)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Journal.SaveOutcome(t.Context(), claimed.Entry.Seq, claimed.Entry.Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err != nil {
			t.Fatal(err)
		}
		if page, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 50}); err != nil || len(page) != 50 {
			t.Fatalf("a page of entries: got %d, error %v; want 50", len(page), err)
		}
	}
	s.Close() // connections report their reads when they are closed

	const most = 500
	for table, r := range storetest.ReadsOfTables(t, watch, tables...) {
		scans, rows := r.Scans-before[table].Scans, (r.Rows-before[table].Rows)/repeats
		// PostgreSQL scans the table of dependencies, which is empty.
		if table == "journal_entry" && scans > 0 || rows > most {
			t.Errorf("got %d scans of the table %s and %d rows read for each entry, want no scan and at most %d rows",
				scans, table, rows, most)
		}
	}
}
