package journalstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// takeWaiting claims the backlog, and returns the numbers of the claimed entries, and the claims by entry
// number.
func takeWaiting(
	t *testing.T,
	s *store.Store,
	since journalstore.Timestamp,
	limit int,
) (seqs []int64, takes map[int64]journal.ClaimResult) {
	t.Helper()
	all, err := s.Journal.ClaimBacklog(t.Context(), since, limit, 99)
	if err != nil {
		t.Fatal(err)
	}
	takes = map[int64]journal.ClaimResult{}
	for _, take := range all {
		seqs = append(seqs, take.Entry.Seq)
		takes[take.Entry.Seq] = take
	}
	return seqs, takes
}

func now(t *testing.T, s *store.Store) journalstore.Timestamp {
	t.Helper()
	mark, err := s.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// age sets the times at which all entries were recorded and last examined to times in the past.
func age(t *testing.T, url string) {
	t.Helper()
	storetest.Exec(t, url,
		`update journal_entry set created_at = created_at - interval '1 h', looked_at = looked_at - interval '1 h'`)
}

// away saves, for an entry, the outcome of an attempt that did not reach the controller.
func away(t *testing.T, s *store.Store, seq int64) {
	t.Helper()
	o := journal.Outcome{
		Kind:           journal.OutcomeRetry,
		RetryAfter:     time.Hour,
		Reason:         "unreachable",
		ControllerDown: true,
	}
	if _, err := s.Journal.SaveOutcome(t.Context(), seq, take(t, s, seq).Entry.Attempt, o); err != nil {
		t.Fatal(err)
	}
}

func TestClaimBacklog_OldestFirstAndParentsFirst(t *testing.T) {
	t.Parallel()
	// entry 1: the network; entries 2 and 3: its ports; entry 4: an update of the first port
	s, url := recordFamily(t)
	recordAll(t, s, change(t, "create network m"), change(t, "create network o"))
	storetest.ClaimNotes(t, s)
	storetest.Exec(t, url, `delete from note`) // every workflow has started
	away(t, s, 1)
	away(t, s, 5)
	away(t, s, 6)
	age(t, url)
	since := now(t, s)
	var order []int64
	for seqs, takes := takeWaiting(t, s, since, 2); len(seqs) > 0; seqs, takes = takeWaiting(t, s, since, 2) {
		order = append(order, seqs...)
		for seq, taken := range takes {
			if held := take(t, s, seq); held.Wait <= 0 || held.Wait > s.Journal.ClaimDuration() {
				t.Errorf(
					"claim entry %d of the claimed backlog again: got %+v, want a wait of at most ClaimDuration",
					seq,
					held,
				)
			}
			if _, err := s.Journal.SaveSharedOutcome(t.Context(), seq, taken.Entry.Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]int64{1, 5, 2, 3, 4, 6}, order); diff != "" {
		t.Error(diff)
	}
	if got := due(t, s); len(got) > 0 {
		t.Errorf("want no due note while the backlog is claimed, got %v", got)
	}
	storetest.Exec(t, url, `update note set due_at = now()`)
	all := []string{"journal/1", "journal/2", "journal/3", "journal/4", "journal/5", "journal/6"}
	if got := due(t, s); !slices.Equal(got, all) {
		t.Errorf("notes of the backlog's entries: got %v, want those of entries 1 to 6", got)
	}
	if e := take(t, s, 4).Entry; e.SentBy == nil || *e.SentBy != 99 || e.State != journal.Completed {
		t.Errorf("entry 4: got %+v, want it completed with SentBy 99", e)
	}
}

func TestClaimBacklog_IgnoresBackOffOnlyIfControllerWasUnreachable(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	recordAll(
		t,
		s,
		change(t, "create network refused"),
		change(t, "create network failed"),
		change(t, "create network away"),
		change(t, "create network unlooked"),
	)
	for seq, kind := range map[int64]journal.OutcomeKind{1: journal.OutcomeRejected, 2: journal.OutcomeFailed} {
		e := take(t, s, seq).Entry
		if _, err := s.Journal.SaveOutcome(t.Context(), seq, e.Attempt, journal.Outcome{Kind: kind, RetryAfter: time.Hour, Reason: "no"}); err != nil {
			t.Fatal(err)
		}
	}
	away(t, s, 3)
	age(t, url)
	recordAll(t, s, change(t, "create network new"))
	// the entry stays new, however slow the test is
	storetest.Exec(t, url,
		`update journal_entry set created_at = created_at + interval '1 h' where seq = 5`)
	since := now(t, s)

	seqs, takes := takeWaiting(t, s, since, 10)

	if diff := cmp.Diff([]int64{3, 4}, seqs); diff != "" {
		t.Error(diff)
	}
	o := journal.Outcome{
		Kind:           journal.OutcomeRetry,
		RetryAfter:     time.Hour,
		Reason:         "away again",
		ControllerDown: true,
	}
	for seq, take := range takes {
		if _, err := s.Journal.SaveSharedOutcome(t.Context(), seq, take.Entry.Attempt, o); err != nil {
			t.Fatal(err)
		}
	}
	if seqs, _ := takeWaiting(t, s, since, 10); len(seqs) > 0 {
		t.Errorf(
			"claim the backlog again: got the entries %v, want none, because each has an attempt since the start",
			seqs,
		)
	}
}

// When a claim by ClaimBacklog has expired, the next call of ClaimBacklog claims the entry again, with
// MaybeApplied: the process that made the first claim may have died after it sent the change.
func TestClaimBacklog_ExpiredClaimBelongsToTheBacklog(t *testing.T) {
	t.Parallel()
	s, url := recordFamily(t)
	away(t, s, 1)
	age(t, url)
	_, takes := takeWaiting(t, s, now(t, s), 10)
	if claimed, err := s.Journal.HasClaimedBacklog(t.Context()); err != nil || !claimed {
		t.Errorf("after a batch was claimed: got claimed %t, error %v; want true", claimed, err)
	}
	storetest.Exec(t, url,
		`update journal_entry set retry_at = now() + interval '1 h' where state = 'processing'`)
	if seqs, _ := takeWaiting(t, s, now(t, s), 10); len(seqs) != 0 {
		t.Errorf(
			"claim the backlog before the claim of the first batch has expired: got the entries %v, want none",
			seqs,
		)
	}
	storetest.Exec(t, url, `update journal_entry set retry_at = now() where state = 'processing'`)

	seqs, again := takeWaiting(t, s, now(t, s), 10)

	if len(seqs) != len(takes) || !again[1].MaybeApplied ||
		again[1].Entry.Attempt != takes[1].Entry.Attempt+1 {
		t.Errorf(
			"claim the backlog after the claim of the first batch has expired: got the entries %v, the first one %+v; want the next attempt of all with MaybeApplied",
			seqs,
			again[1],
		)
	}
}

// When a claim by ClaimBacklog has expired, the entry's own workflow can claim the entry. The claim has
// MaybeApplied, so that the workflow reads the object at the controller before it sends the change again.
func TestClaimBacklog_ExpiredClaimIsRepeatedWithARead(t *testing.T) {
	t.Parallel()
	s, url := recordFamily(t)
	away(t, s, 1)
	age(t, url)
	_, takes := takeWaiting(t, s, now(t, s), 10)
	storetest.Exec(t, url, `update journal_entry set retry_at = now() where state = 'processing'`)

	again := take(t, s, 1)

	if !again.MaybeApplied || again.Entry.Attempt != takes[1].Entry.Attempt+1 {
		t.Errorf(
			"claim an entry after its claim has expired: got %+v, want the next attempt with MaybeApplied",
			again,
		)
	}
	if _, err := s.Journal.SaveSharedOutcome(t.Context(), 1, takes[1].Entry.Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err == nil {
		t.Error("save the outcome of an expired claim: got no error, want one")
	}
}
