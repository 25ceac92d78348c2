package journalstore_test

import (
	"slices"
	"testing"

	"berth/internal/store/storetest"
)

func TestOpenEntries_HaveTheEntriesForWhichTheyWait(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, created_at, finished_at)
		select 'port', i::text, 'create', '{}', '{}', 'p', '', case when i <= 2 then 'completed' else 'pending' end, now() - interval '10 seconds', case when i <= 2 then now() end
		from generate_series(1, 6) i;
		insert into journal_dep (entry, waits_for) select max(seq), max(seq) - i from journal_entry, generate_series(1, 2) i group by i`)
	first, err := s.Journal.OpenEntries(t.Context(), 0, 3)
	if err != nil || len(first) != 3 {
		t.Fatalf("first page of the open entries: got %d, error %v, want 3", len(first), err)
	}
	last, err := s.Journal.OpenEntries(t.Context(), first[2].Seq, 3)
	if err != nil || len(last) != 1 || last[0].Object.ID != "6" ||
		!slices.Equal(last[0].WaitsFor, []int64{first[1].Seq, first[2].Seq}) {
		t.Errorf(
			"last page: got %+v, error %v, want the last entry, which waits for the two entries before it",
			last,
			err,
		)
	}
	delays, err := s.Journal.Delays(t.Context(), 5)
	if err != nil || len(delays) != 5 || delays[0].Open || delays[0].Seconds != 10 || !delays[4].Open ||
		delays[4].Seconds < 10 {
		t.Errorf(
			"delays of the newest five entries: got %+v, error %v, want one completed after ten seconds, then four open ones",
			delays,
			err,
		)
	}
}
