package journalstore_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// change parses a change and its parents: `change(t, "create port p", "network n", "subnet s")`.
func change(t *testing.T, what string, parents ...string) journal.Change {
	t.Helper()
	c := journal.Change{Data: []byte(`{}`), Project: "demo", Name: what}
	if _, err := fmt.Sscan(what, &c.Operation, &c.Object.Type, &c.Object.ID); err != nil {
		t.Fatal(err)
	}
	for _, p := range parents {
		var r journal.Ref
		if _, err := fmt.Sscan(p, &r.Type, &r.ID); err != nil {
			t.Fatal(err)
		}
		c.Parents = append(c.Parents, r)
	}
	return c
}

// recordAll records each change in its own transaction. The notes of blocked entries become due only after an
// hour, so that a slow test does not see them.
func recordAll(t *testing.T, s *store.Store, changes ...journal.Change) {
	t.Helper()
	for _, c := range changes {
		err := s.DB.InTx(t.Context(), func(tx db.Tx) error {
			seqs, err := journalstore.Append(t.Context(), tx, []journal.Change{c})
			if err != nil {
				return err
			}
			_, err = tx.Exec(
				t.Context(),
				`update note set due_at = due_at + interval '1 hour' where workflow_id = 'journal/' || $1::bigint and due_at > now()`,
				seqs[0],
			)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func take(t *testing.T, s *store.Store, seq int64) journal.ClaimResult {
	t.Helper()
	got, err := s.Journal.ClaimEntry(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func settle(t *testing.T, s *store.Store, seq int64, kind journal.OutcomeKind) {
	t.Helper()
	e := take(t, s, seq).Entry
	if e.State != journal.Processing {
		t.Fatalf("claim entry %d: its state is %s, want processing", seq, e.State)
	}
	if _, err := s.Journal.SaveOutcome(t.Context(), seq, e.Attempt, journal.Outcome{Kind: kind, Reason: string(kind)}); err != nil {
		t.Fatal(err)
	}
}

func waitsFor(t *testing.T, s *store.Store, seq int64) []int64 {
	t.Helper()
	var seqs []int64
	for _, b := range take(t, s, seq).Blockers {
		seqs = append(seqs, b.Seq)
	}
	return seqs
}

// due lists the notes that a relay would deliver now.
func due(t *testing.T, s *store.Store) []string {
	t.Helper()
	ids := []string{}
	for _, n := range storetest.ClaimNotes(t, s) {
		ids = append(ids, n.ID)
	}
	slices.Sort(ids)
	return ids
}

// The caller would take an entry in processing without a blocker for claimed, and would send it together with
// the process that has claimed it.
func TestClaimEntry_ReturnsNoFreeEntryThatItHasNotClaimed(t *testing.T) {
	t.Parallel()
	for _, state := range []journal.State{journal.Pending, journal.Processing} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			recordAll(t, s, change(t, "create network n"))
			if state == journal.Processing {
				take(t, s, 1)
			}
			// each claim comes too late, but the read after it finds the entry free
			storetest.ExecScript(t, url, `
				create function come_too_late() returns trigger language plpgsql as $$ begin return null; end $$;
				create trigger come_too_late before update on journal_entry for each row execute function come_too_late()`)

			got, err := s.Journal.ClaimEntry(t.Context(), 1)

			if err == nil || got.Entry.Seq != 0 {
				t.Errorf("claim an entry that is free but cannot be claimed: got %+v, error %v; want an error and no entry", got, err)
			}
		})
	}
}

func TestClaimEntry_EntriesOfOneObjectInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create port p"),
		change(t, "update port p"), change(t, "delete port p"), change(t, "create port p"))

	for seq := int64(1); seq <= 4; seq++ {
		for later := seq + 1; later <= 4; later++ {
			if take(t, s, later).Entry.State != journal.Pending {
				t.Fatalf("claim entry %d before entry %d is completed: got it claimed, want it blocked",
					later, seq)
			}
		}
		settle(t, s, seq, journal.OutcomeDone)
	}
}

func TestAppend_Blockers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	seq := int64(0)
	ops := []string{"create", "update", "delete"}
	of := func(op string) []string { return []string{op} }
	for _, tt := range []struct {
		first, second string
		firsts        []string
		seconds       []string
		blocks        bool
	}{
		{"network n", "subnet s", ops, of("create"), true},
		{"network n", "subnet s", ops, of("update"), true},
		{"network n", "subnet s", ops, of("delete"), false},
		{"subnet s", "network n", ops, of("create"), false},
		{"subnet s", "network n", ops, of("update"), false},
		{"subnet s", "network n", ops, of("delete"), true},
		{"network n", "port p", ops, of("create"), true},
		{"network n", "port p", ops, of("update"), true},
		{"subnet s", "port p", ops, of("create"), true},
		{"subnet s", "port p", ops, of("update"), true},
		{"port p", "network n", ops, of("update"), false},
		{"port p", "subnet s", ops, of("update"), false},
		{"port p", "network n", ops, of("delete"), true},
		{"port p", "subnet s", ops, of("delete"), true},
		{"port p", "port p", ops, ops, true},
		{"port p", "port q", ops, ops, false},
		{"port n", "network n", ops, ops, false},
	} {
		for _, a := range tt.firsts {
			for _, b := range tt.seconds {
				mine := fmt.Sprint(seq) // suffix of the object IDs, so that each case has its own objects
				parents := map[string][]string{
					"subnet s": {"network n" + mine},
					"port p":   {"network n" + mine, "subnet s" + mine, "subnet s" + mine},
				}

				recordAll(t, s, change(t, a+" "+tt.first+mine, parents[tt.first]...),
					change(t, b+" "+tt.second+mine, parents[tt.second]...))

				want := []int64(nil)
				if tt.blocks {
					want = []int64{seq + 1}
				}
				if d := cmp.Diff(want, waitsFor(t, s, seq+2)); d != "" {
					t.Errorf("blockers of the second entry in '%s %s, then %s %s' (-want +got):\n%s",
						a, tt.first, b, tt.second, d)
				}
				seq += 2
			}
		}
	}
}

func TestAppend_BlockedEntryIsDueWhenItsBlockerCompletes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"), change(t, "create subnet s", "network n"),
		change(t, "create port p", "network n", "subnet s"))
	if d := cmp.Diff([]string{"journal/1"}, due(t, s)); d != "" {
		t.Fatal(d)
	}

	settle(t, s, 1, journal.OutcomeDone)
	if d := cmp.Diff([]string{"journal/2"}, due(t, s)); d != "" {
		t.Fatal(d)
	}

	settle(t, s, 2, journal.OutcomeDone)
	if d := cmp.Diff([]string{"journal/3"}, due(t, s)); d != "" {
		t.Error(d)
	}
}

// A port's entry is recorded while its network's entry completes. Either the port's entry is not blocked, or
// a note wakes the workflow of the port's entry.
func TestAppend_ChildOfACompletingParentIsAlwaysWoken(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for round := range int64(150) {
		network := fmt.Sprintf("network n%d", round)
		recordAll(t, s, change(t, "create "+network))
		parent := 2*round + 1
		e := take(t, s, parent).Entry
		due(t, s)

		var g sync.WaitGroup
		g.Go(func() {
			time.Sleep(time.Duration(round%10) * 100 * time.Microsecond)
			if _, err := s.Journal.SaveOutcome(t.Context(), parent, e.Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err != nil {
				t.Error(err)
			}
		})
		g.Go(func() { recordAll(t, s, change(t, fmt.Sprintf("create port p%d", round), network)) })
		g.Wait()

		child := fmt.Sprintf("journal/%d", parent+1)
		if d := cmp.Diff([]string{child}, due(t, s)); d != "" {
			t.Fatalf(
				"round %d: due notes after an entry was recorded while its blocker completed (-want +got): %s",
				round,
				d,
			)
		}
		if b := waitsFor(t, s, parent+1); len(b) > 0 {
			t.Fatalf(
				"round %d: the workflow of the port's entry was woken, but entries %d still block it",
				round,
				b,
			)
		}
	}
}

func TestSaveOutcome_ConcurrentBlockersWakeTheChild(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for round := range int64(100) {
		network, subnet := fmt.Sprintf("network n%d", round), fmt.Sprintf("subnet s%d", round)
		recordAll(t, s, change(t, "create "+network), change(t, "create "+subnet),
			change(t, "create port p", network, subnet))
		due(t, s)

		var g sync.WaitGroup
		for seq := 3*round + 1; seq < 3*round+3; seq++ {
			e := take(t, s, seq).Entry
			g.Go(func() {
				if _, err := s.Journal.SaveOutcome(t.Context(), seq, e.Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err != nil {
					t.Error(err)
				}
			})
		}
		g.Wait()

		if d := cmp.Diff([]string{fmt.Sprintf("journal/%d", 3*round+3)}, due(t, s)); d != "" {
			t.Fatalf("round %d: due notes after both blockers have completed (-want +got): %s", round, d)
		}
		settle(t, s, 3*round+3, journal.OutcomeDone)
	}
}

func TestSaveOutcome_StaleAttemptIsAConflict(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"))
	dead := take(t, s, 1)
	alive := take(t, s, 1)
	if dead.MaybeApplied || !alive.MaybeApplied || alive.Entry.Attempt != 2 {
		t.Fatalf(
			"claim an entry twice: got %+v and %+v, want the second claim to be attempt 2 with MaybeApplied",
			dead,
			alive,
		)
	}

	_, err := s.Journal.SaveOutcome(t.Context(), 1, dead.Entry.Attempt,
		journal.Outcome{Kind: journal.OutcomeFailed})
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf("save the outcome of a stale attempt: got error %v, want ErrConflict", err)
	}

	done := journal.Outcome{Kind: journal.OutcomeDone}
	for range 2 { // the second call repeats the first one, as after a lost response
		e, err := s.Journal.SaveOutcome(t.Context(), 1, alive.Entry.Attempt, done)
		if err != nil || e.State != journal.Completed || e.FinishedAt == nil {
			t.Errorf(
				"save the outcome of the newest attempt: got %+v, error %v; want the entry completed",
				e,
				err,
			)
		}
	}
	_, err = s.Journal.SaveOutcome(t.Context(), 1, alive.Entry.Attempt, journal.Outcome{Kind: journal.OutcomeRetry})
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf("save another outcome for a completed entry: got error %v, want ErrConflict", err)
	}
	if _, err := s.Journal.SaveOutcome(t.Context(), 7, 1, done); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("save an outcome for an unknown entry: got error %v, want ErrNotFound", err)
	}
}
