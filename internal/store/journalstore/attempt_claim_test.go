package journalstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// finish completes an entry and claims up to `limit` of the unblocked entries.
func finish(t *testing.T, s *store.Store, seq int64, limit int) (along []journal.Entry, seqs []int64) {
	t.Helper()
	e := take(t, s, seq).Entry
	_, along, err := s.Journal.SaveOutcomeAndClaim(t.Context(), seq, e.Attempt, journal.Outcome{Kind: journal.OutcomeDone}, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range along {
		seqs = append(seqs, e.Seq)
	}
	return along, seqs
}

// family records the creation of a network and of two ports on it, and an update of the first port.
func family(t *testing.T) (*store.Store, string) {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"), change(t, "create port q", "network n"),
		change(t, "update port p", "network n"))
	return s, url
}

func TestSaveOutcomeAndClaim_OnlyUnblockedEntries(t *testing.T) {
	t.Parallel()
	s, _ := family(t)

	along, seqs := finish(t, s, 1, 8)

	if diff := cmp.Diff([]int64{2, 3}, seqs); diff != "" {
		t.Error(diff)
	}
	if e := along[0]; e.State != journal.Processing || e.Attempt != 1 || string(e.Data) != "{}" || e.BatchLeader == nil || *e.BatchLeader != 1 {
		t.Errorf("first claimed entry: got %+v, want it processing at attempt 1 with entry 1 as batch leader", e)
	}
	if blockers := waitsFor(t, s, 4); !slices.Equal(blockers, []int64{2}) {
		t.Errorf("blockers of the update: got %v, want only entry 2", blockers)
	}
	if got := due(t, s); len(got) > 0 {
		t.Errorf("want no due note, because every entry is completed, claimed or blocked; got %v", got)
	}
}

func TestSaveOutcomeAndClaim_ExcludesOtherAttempts(t *testing.T) {
	t.Parallel()
	s, url := family(t)
	along, _ := finish(t, s, 1, 8)

	held := take(t, s, 2)

	if held.Wait <= 0 || held.Wait > journalstore.ClaimDuration || held.Entry.Attempt != 1 {
		t.Errorf("claim an entry that another attempt has claimed: got %+v, want attempt 1 and a wait of at most ClaimDuration", held)
	}
	if _, err := s.Journal.SkipEntry(t.Context(), 2, "ann", "why not"); err == nil {
		t.Error("skip an entry that is being sent: got no error, want one")
	}
	if _, err := s.Journal.SaveOutcome(t.Context(), 2, along[0].Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err != nil {
		t.Error(err)
	}
	storetest.Exec(t, url, `update note set due_at = now()`)
	if got := due(t, s); !slices.Equal(got, []string{"journal/3", "journal/4"}) {
		t.Errorf("notes after entry 2 is completed: got %v, want only journal/3 and journal/4", got)
	}
}

func TestSaveOutcomeAndClaim_ExpiredClaimStartsTheWorkflow(t *testing.T) {
	t.Parallel()
	s, url := family(t)
	along, _ := finish(t, s, 1, 8)
	storetest.ClaimNotes(t, s)
	storetest.Exec(t, url, `update journal_entry set retry_at = now() where state = 'processing'`)
	storetest.Exec(t, url, `update note set due_at = due_at - interval '5 s' where attempts = 0`)

	got := due(t, s)
	again := take(t, s, 2)

	if !slices.Equal(got, []string{"journal/2", "journal/3", "journal/4"}) {
		t.Errorf("notes that are due after the claims have expired: got %v, want journal/2, journal/3 and journal/4", got)
	}
	if !again.MaybeApplied || again.Entry.Attempt != 2 {
		t.Errorf("claim an entry after its claim has expired: got %+v, want attempt 2 with MaybeApplied", again)
	}
	if _, err := s.Journal.SaveOutcome(t.Context(), 2, along[0].Attempt, journal.Outcome{Kind: journal.OutcomeDone}); err == nil {
		t.Error("save the outcome of a stale attempt: got no error, want one")
	}
}

func TestSaveOutcomeAndClaim_FailureWakesTheWorkflowAtOnce(t *testing.T) {
	t.Parallel()
	for kind, want := range map[journal.OutcomeKind][]string{journal.OutcomeRetry: {"journal/2"}, journal.OutcomeRejected: {"journal/2"},
		journal.OutcomeFailed: {"journal/2", "journal/4"}} { // entry 4 waits for entry 2, which has failed
		s, _ := family(t)
		along, _ := finish(t, s, 1, 1)
		storetest.ClaimNotes(t, s)

		if _, err := s.Journal.SaveOutcome(t.Context(), 2, along[0].Attempt, journal.Outcome{Kind: kind, RetryAfter: time.Hour, Reason: "no"}); err != nil {
			t.Fatal(err)
		}

		if got := due(t, s); !slices.Equal(got, want) {
			t.Errorf("notes that are due after the outcome %s of entry 2: got %v, want %v", kind, got, want)
		}
	}
}

func TestSaveOutcomeAndClaim_RunningWorkflowIsWokenInstead(t *testing.T) {
	t.Parallel()
	s, url := family(t)
	storetest.Exec(t, url, `update note set due_at = now() where workflow_id = 'journal/2'`)
	if got := strings.Join(due(t, s), " "); got != "journal/1 journal/2" {
		t.Fatal(got)
	}

	_, seqs := finish(t, s, 1, 8)

	if diff := cmp.Diff([]int64{3}, seqs); diff != "" {
		t.Error(diff)
	}
	if got := due(t, s); !slices.Equal(got, []string{"journal/2"}) {
		t.Errorf("notes that are due: got %v, want only journal/2", got)
	}
}
