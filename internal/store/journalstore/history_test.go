package journalstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func TestTrimJournal_InBatchesAndOnlyCompletedEntries(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, state, project, name, created_at, finished_at)
		select 'port', 'p' || n, 'create', '{}', '{}', case when n % 10 = 0 then 'pending' else 'completed' end, '', '',
			now() - interval '2 days', case when n % 10 <> 0 then now() - interval '2 days' + n * interval '1 minute' end
		from generate_series(1, 100) n
		order by n`)
	recordAll(t, s, change(t, "create network n"))
	settle(t, s, 101, journal.OutcomeDone)

	var deleted []int64
	for after := int64(0); ; {
		// only the first entries are older than 47 hours
		next, n, err := s.Journal.TrimJournal(t.Context(), 47*time.Hour, after, 30)
		if err != nil {
			t.Fatal(err)
		}
		deleted = append(deleted, n)
		if next == 0 {
			break
		}
		after = next
	}

	if d := cmp.Diff([]int64{27, 27, 0, 0, 0}, deleted); d != "" {
		t.Error(d)
	}
	left, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 1000})
	if err != nil || len(left) != 101-54 {
		t.Errorf("entries after the trim: got %d, error %v; want 47", len(left), err)
	}
}

func TestAnalyze_PercentilesAndSlowestEntries(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	if a, err := s.Journal.Analyze(t.Context(), 10, 10); err != nil || a.Entries != 0 || len(a.Slowest) != 0 {
		t.Errorf("analyze an empty journal: got %+v, error %v; want no entries", a, err)
	}
	storetest.Exec(t, url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, state, attempt, project, name, created_at, finished_at)
		select 'port', 'p' || n, 'create', '{}', '{}', case when n = 100 then 'pending' else 'completed' end, 2, '', '', now(),
			case when n <> 100 then now() + n * interval '1 second' end
		from generate_series(0, 100) n
		order by n`)

	// the newest hundred entries, of which one is still pending
	a, err := s.Journal.Analyze(t.Context(), 100, 2)
	if err != nil {
		t.Fatal(err)
	}

	if len(a.Slowest) != 2 || a.Slowest[0].Seq != 100 || a.Slowest[1].Seq != 99 {
		t.Errorf("slowest entries: got %+v, want 100 and 99", a.Slowest)
	}
	a.Slowest = nil
	if d := cmp.Diff(journalstore.Analysis{
		Entries:  99,
		Average:  50,
		P50:      50,
		P90:      89.2,
		P99:      98.02,
		P999:     98.902,
		Attempts: 2,
	}, a, floats); d != "" {
		t.Error(d)
	}
	j, err := s.Journal.JournalState(t.Context())
	if err != nil || j.Oldest <= 0 {
		t.Errorf("count the open entries: got %+v, error %v; want the age of the oldest above 0", j, err)
	}
	if d := cmp.Diff(map[journal.State]int64{journal.Pending: 1, journal.Processing: 0, journal.Failed: 0}, j.Open); d != "" {
		t.Error(d)
	}
}

var floats = cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
