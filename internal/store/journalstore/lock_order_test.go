package journalstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// A second writer holds the lock of an entry that a transaction must lock first. While the transaction waits
// for this lock, it must not hold the lock of an entry with a higher number.
func TestLockOrder_EntriesByNumber(t *testing.T) {
	t.Parallel()
	lock := func(seq int, more string) string {
		return fmt.Sprintf(`select from journal_entry where seq = %d for update %s`, seq, more)
	}
	complete := func(s *store.Store, attempt int) error {
		_, err := s.Journal.SaveOutcome(t.Context(), 1, attempt, journal.Outcome{Kind: journal.OutcomeDone})
		return err
	}
	appendPort := func(s *store.Store, _ int) error {
		created := []journal.Change{change(t, "create port q", "subnet s", "network n")}
		return s.DB.InTx(t.Context(), func(tx db.Tx) error {
			_, err := journalstore.Append(t.Context(), tx, created)
			return err
		})
	}
	skip := func(s *store.Store, _ int) error {
		_, err := s.Journal.SkipEntry(t.Context(), 1, "operator", "test")
		return err
	}
	for name, tt := range map[string]struct {
		change        func(s *store.Store, attempt int) error
		first, second int
	}{
		"entries for which a new entry waits":        {appendPort, 1, 2},
		"entry before the entries that wait for it":  {complete, 1, 2},
		"entries that wait for the completed entry":  {complete, 2, 3},
		"entries that wait for the entry if skipped": {skip, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			recordAll(t, s, change(t, "create network n"), change(t, "create subnet s", "network n"),
				change(t, "create port p", "network n"))
			attempt := take(t, s, 1).Entry.Attempt
			// An operator cannot skip an entry that is being sent, and a new entry waits only shortly for
			// locks.
			storetest.Exec(t, url, `
				update journal_entry
				set taken_at = taken_at - interval '1 hour', created_at = created_at - interval '1 hour'`)

			err := storetest.NewRival(t, url).RunAgainst(func() error { return tt.change(s, attempt) },
				lock(tt.first, ""), lock(tt.second, "nowait"))

			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLockedEntries_AreSkippedByBacklogAndSweep(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	for _, network := range []string{"m", "n", "o"} {
		recordAll(t, s, change(t, "create network "+network))
	}
	storetest.ExecScript(t, url, `
		update journal_entry set created_at = created_at - interval '1 hour', looked_at = looked_at - interval '1 hour';
		delete from note`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`select from journal_entry where seq = 1 for update`)

	now, err := s.Journal.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Journal.ClaimBacklog(ctx, now, 1, 9)
	if err != nil || len(claimed) != 1 || claimed[0].Entry.Seq != 2 {
		t.Errorf("claim an entry while entry 1 is locked: got %+v, error %v; want entry 2", claimed, err)
	}
	swept, err := s.Journal.SweepEntries(ctx, time.Minute, 9)
	if err != nil || len(swept) != 1 || swept[0] != 3 {
		t.Errorf("sweep the entries while entry 1 is locked: got %v, error %v; want entry 3", swept, err)
	}
	rival.Do(`rollback`)
}

// A project that keeps its network locked does not keep connections to the database for the claims and the
// outcomes of its entries: the entry of the network waits only shortly, and entries that wait for others wait
// for no lock.
func TestClaimEntry_DoesNotHoldAConnectionWhileItsNetworkIsLocked(t *testing.T) {
	t.Parallel()
	base := storetest.URL(t)
	separator := "?"
	if strings.Contains(base, "?") {
		separator = "&"
	}
	s := storetest.Open(t, base+separator+"lock_timeout=0")
	recordAll(t, s, change(t, "create network n"), change(t, "update network n"), change(t, "create network o"))
	sending := take(t, s, 3).Entry
	rival := storetest.NewRival(t, base)
	rival.Do(`begin`)
	rival.Do(`select pg_advisory_xact_lock(hashtextextended(object, 0)) from (select 'network ' || object_id as object from journal_entry) as e`)

	if _, err := s.Journal.ClaimEntry(t.Context(), 1); !db.WasLocked(err) {
		t.Errorf("claim the entry of a locked network: got error %v, want one for which WasLocked reports true", err)
	}
	blocked, err := s.Journal.ClaimEntry(t.Context(), 2)
	if err != nil || len(blocked.Blockers) != 1 {
		t.Errorf("claim an entry that waits for another: got %+v, error %v; want its blocker", blocked, err)
	}
	_, err = s.Journal.SaveOutcome(t.Context(), 3, sending.Attempt, journal.Outcome{Kind: journal.OutcomeDone})
	if !db.WasLocked(err) {
		t.Errorf("save the outcome of the entry of a locked network: got error %v, want one for which WasLocked reports true", err)
	}

	rival.Do(`rollback`)
	if got := take(t, s, 1).Entry.State; got != journal.Processing {
		t.Errorf("claim the entry when its network is free: got the state %s, want processing", got)
	}
}
