package journalstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func TestRetryEntry_FailedParentBlocksChildren(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"))
	settle(t, s, 1, journal.OutcomeFailed)
	due(t, s)

	held := take(t, s, 2)
	if len(held.Blockers) != 1 || held.Blockers[0].State != journal.Failed ||
		held.Entry.State != journal.Pending {
		t.Fatalf(
			"claim the port's entry: got %+v, want it pending and blocked by the failed entry of its network",
			held,
		)
	}
	if e := take(t, s, 1).Entry; e.State != journal.Failed {
		t.Fatalf("claim a failed entry: got %+v, want it failed as before", e)
	}

	e, err := s.Journal.RetryEntry(t.Context(), 1, "admin")
	if err != nil || e.State != journal.Pending || e.Failures != 0 {
		t.Fatalf("retry a failed entry: got %+v, error %v; want it pending without failures", e, err)
	}
	settle(t, s, 1, journal.OutcomeDone)
	if d := cmp.Diff([]int64(nil), waitsFor(t, s, 2)); d != "" {
		t.Error(d)
	}
}

func TestSkipEntry_UnblocksChildren(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"))
	settle(t, s, 1, journal.OutcomeFailed)
	storetest.Exec(t, url, `update journal_entry set error_code = 'missing_parent' where seq = 1`)
	taken, err := s.Outbox.Claim(t.Context(), "", 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Outbox.Settle(t.Context(), "", taken); err != nil {
		t.Fatal(err)
	}

	e, err := s.Journal.SkipEntry(t.Context(), 1, "admin", "made by hand")
	if err != nil || e.State != journal.Completed || e.LastError != "skipped by admin: made by hand" {
		t.Fatalf(
			"skip a failed entry: got %+v, error %v; want it completed, with the actor and the reason as its last error",
			e,
			err,
		)
	}

	if d := cmp.Diff([]string{"journal/1", "journal/2"}, due(t, s)); d != "" {
		t.Error(d)
	}
	if b := waitsFor(t, s, 2); len(b) > 0 {
		t.Errorf("blockers of the port's entry after the skip: got %d, want none", b)
	}
	var action, actor, reason, code string
	row := storetest.Connect(t, url).
		QueryRow(t.Context(), `select action, actor, reason, error_code from journal_audit join journal_entry using (seq) where seq = 1`)
	if err := row.Scan(&action, &actor, &reason, &code); err != nil || action != "skip" || actor != "admin" ||
		reason != "made by hand" || code != "" {
		t.Errorf(
			"recorded decision: got action %q, actor %q, reason %q, code %q, error %v; want the skip with its actor and reason, and no code of an error",
			action,
			actor,
			reason,
			code,
			err,
		)
	}
}

func TestRetryAndSkipEntry_SentOrCompletedIsAConflict(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"))
	for _, state := range []journal.State{journal.Processing, journal.Completed} {
		switch state {
		case journal.Processing:
			take(t, s, 1)
		case journal.Completed:
			settle(t, s, 1, journal.OutcomeDone)
		}
		if _, err := s.Journal.RetryEntry(t.Context(), 1, "admin"); !errors.Is(err, db.ErrConflict) {
			t.Errorf("retry a %s entry: got error %v, want ErrConflict", state, err)
		}
		_, err := s.Journal.SkipEntry(t.Context(), 1, "admin", "why not")
		if !errors.Is(err, db.ErrConflict) {
			t.Errorf("skip a %s entry: got error %v, want ErrConflict", state, err)
		}
	}
	if _, err := s.Journal.RetryEntry(t.Context(), 9, "admin"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("retry an unknown entry: got error %v, want ErrNotFound", err)
	}
	if _, _, decisions, err := s.Journal.JournalEntry(t.Context(), 1); err != nil || len(decisions) != 0 {
		t.Errorf("decisions after refused retries and skips: got %v, error %v; want none", decisions, err)
	}
}

func TestRetryEntry_EndsBackOff(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"))
	e := take(t, s, 1).Entry
	if _, err := s.Journal.SaveOutcome(t.Context(), 1, e.Attempt, journal.Outcome{Kind: journal.OutcomeRetry, RetryAfter: time.Hour, Reason: "429"}); err != nil {
		t.Fatal(err)
	}

	resting := take(t, s, 1)
	if resting.Entry.State != journal.Pending || resting.Wait <= 50*time.Minute || resting.Wait > time.Hour ||
		resting.Entry.RetryAt == nil {
		t.Errorf("claim an entry during its back-off: got %+v, want it pending with a wait of an hour",
			resting)
	}
	if _, err := s.Journal.RetryEntry(t.Context(), 2, "ann"); !errors.Is(err, db.ErrConflict) {
		t.Errorf("retry a blocked entry: got error %v, want ErrConflict", err)
	}
	due(t, s)
	if _, err := s.Journal.RetryEntry(t.Context(), 1, "ann"); err != nil {
		t.Fatal(err)
	}

	if d := cmp.Diff([]string{"journal/1"}, due(t, s)); d != "" {
		t.Error(d)
	}
	if got := take(t, s, 1).Entry; got.State != journal.Processing || got.RetryAt != nil {
		t.Errorf("claim the entry after the retry: got %+v, want it processing without a back-off", got)
	}
	_, _, decisions, err := s.Journal.JournalEntry(t.Context(), 1)
	if err != nil || len(decisions) != 1 {
		t.Fatalf("decisions after the retry: got %v, error %v; want one", decisions, err)
	}
	if d := cmp.Diff([]journal.OperatorDecision{{At: decisions[0].At, Actor: "ann", Action: "retry"}}, decisions); d != "" {
		t.Error(d)
	}
}

// After an entry is skipped, the entries that waited for it wait for its blockers.
func TestSkipEntry_DependentsInheritBlockers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(
		t,
		s,
		change(t, "create network n"),
		change(t, "update network n"),
		change(t, "delete network n"),
	)
	if d := cmp.Diff([]int64{2}, waitsFor(t, s, 3)); d != "" {
		t.Fatal(d)
	}

	if _, err := s.Journal.SkipEntry(t.Context(), 2, "ann", "stuck"); err != nil {
		t.Fatal(err)
	}

	if d := cmp.Diff([]int64{1}, waitsFor(t, s, 3)); d != "" {
		t.Error(d)
	}
	settle(t, s, 1, journal.OutcomeDone)
	settle(t, s, 3, journal.OutcomeDone)
}

func TestSaveOutcome_CountsOnlyUnexpectedAnswersAsFailures(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"))

	settle(t, s, 1, journal.OutcomeRetry)
	settle(t, s, 1, journal.OutcomeRejected)
	settle(t, s, 1, journal.OutcomeExists)
	e := take(t, s, 1).Entry

	want := journal.Entry{
		Seq:       1,
		Object:    journal.Ref{Type: "network", ID: "n"},
		Operation: journal.Create,
		Data:      []byte(`{}`),
		State:     journal.Processing,
		Attempt:   4,
		Failures:  1,
		Project:   "demo",
		Name:      "create network n",
		LastError: "exists",
		CreatedAt: e.CreatedAt,
		TakenAt:   e.TakenAt,
	}
	if d := cmp.Diff(want, e); d != "" {
		t.Error(d)
	}
}

func TestClaimEntry_MaybeAppliedAfterUnsureOutcome(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(t, s, change(t, "create network n"))
	for attempt, unsure := range []bool{false, true, false} {
		e := take(t, s, 1).Entry
		if _, err := s.Journal.SaveOutcome(t.Context(), 1, e.Attempt, journal.Outcome{Kind: journal.OutcomeRetry, MaybeApplied: unsure}); err != nil {
			t.Fatal(err)
		}
		next := take(t, s, 1)
		if next.MaybeApplied != unsure {
			t.Errorf(
				"claim after attempt %d: MaybeApplied is %t, want %t",
				attempt+1,
				next.MaybeApplied,
				unsure,
			)
		}
		if _, err := s.Journal.SaveOutcome(t.Context(), 1, next.Entry.Attempt, journal.Outcome{Kind: journal.OutcomeRetry}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepEntries_WakesUnexaminedEntries(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(
		t,
		s,
		change(t, "create network n"),
		change(t, "create port p", "network n"),
		change(t, "create network m"),
		change(t, "create network f"),
	)
	settle(t, s, 4, journal.OutcomeFailed)
	sweep := func(olderThan time.Duration) []int64 {
		seqs, err := s.Journal.SweepEntries(t.Context(), olderThan, 10)
		if err != nil {
			t.Fatal(err)
		}
		return seqs
	}
	if seqs := sweep(0); len(seqs) > 0 {
		t.Fatalf("sweep entries whose notes are not delivered yet: got entries %d, want none", seqs)
	}
	delivered, err := s.Outbox.Claim(t.Context(), "", 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Outbox.Settle(t.Context(), "", delivered); err != nil {
		t.Fatal(err)
	}
	if seqs := sweep(time.Hour); len(seqs) > 0 {
		t.Fatalf("sweep entries that are new: got entries %d, want none", seqs)
	}

	if d := cmp.Diff(2, len(sweep(0))); d != "" {
		t.Errorf("number of swept entries (-want +got; want the two open, unblocked ones):\n%s", d)
	}
	if d := cmp.Diff([]string{"journal/1", "journal/3"}, due(t, s)); d != "" {
		t.Error(d)
	}
	if seqs := sweep(0); len(seqs) > 0 {
		t.Errorf("sweep again while the notes wait: got entries %d, want none", seqs)
	}
}

func TestJournalEntries_FilterAndPage(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	recordAll(
		t,
		s,
		change(t, "create network n"),
		change(t, "create port p", "network n"),
		change(t, "update network n"),
	)
	settle(t, s, 1, journal.OutcomeDone)
	for _, tt := range []struct {
		name   string
		filter journalstore.EntryFilter
		want   []int64
	}{
		{"all", journalstore.EntryFilter{}, []int64{1, 2, 3}},
		{"newest", journalstore.EntryFilter{Newest: true}, []int64{3, 2, 1}},
		{"state", journalstore.EntryFilter{State: journal.Pending}, []int64{2, 3}},
		{"completed", journalstore.EntryFilter{State: journal.Completed}, []int64{1}},
		{"type", journalstore.EntryFilter{Type: "network"}, []int64{1, 3}},
		{"object", journalstore.EntryFilter{Object: "p"}, []int64{2}},
		{"page", journalstore.EntryFilter{After: 1, Limit: 1}, []int64{2}},
		{"newest page", journalstore.EntryFilter{After: 3, Newest: true, Limit: 1}, []int64{2}},
		{"nothing", journalstore.EntryFilter{State: journal.Failed}, nil},
	} {
		if tt.filter.Limit == 0 {
			tt.filter.Limit = 10
		}
		entries, err := s.Journal.JournalEntries(t.Context(), tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, e := range entries {
			seqs = append(seqs, e.Seq)
		}
		if d := cmp.Diff(tt.want, seqs); d != "" {
			t.Errorf("list entries by the filter %q (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestAppend_NoteOfABlockedEntryListsItsBlockers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	begin := time.Now()
	recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"))
	due(t, s)
	if wait, ok, err := s.Outbox.NextDue(t.Context()); err != nil || !ok ||
		wait+time.Since(begin) <= time.Second ||
		wait > 2*time.Hour {
		t.Fatalf(
			"next due note: got it in %s, present %t, error %v; want the note of the blocked entry later, because recordAll delays it",
			wait,
			ok,
			err,
		)
	}

	settle(t, s, 1, journal.OutcomeDone)

	want := []contract.Note{
		{
			Version:  2,
			Attempts: 1,
			Nudge: contract.Nudge{
				Workflow:   contract.JournalEntry,
				ID:         "journal/2",
				NotRunning: true,
				Summary:    "create port create port p",
				Attributes: contract.Attributes{
					Status:     "pending",
					Project:    "demo",
					Resource:   "port",
					WaitingFor: []string{"journal/1"},
				},
			},
		},
	}
	if d := cmp.Diff(want, storetest.ClaimNotes(t, s), storetest.IgnoreCreation); d != "" {
		t.Error(d)
	}
}

// The workflow of a blocked entry wakes up when the entry's blocker fails, and when an operator retries the
// failed blocker.
func TestSaveOutcome_FailedEntryWakesDependents(t *testing.T) {
	t.Parallel()
	s, url := recordFamily(t)
	waiting := func() []string {
		storetest.Exec(t, url, `delete from note`) // as if every workflow had examined its entry
		return due(t, s)
	}
	waiting()

	settle(t, s, 1, journal.OutcomeFailed)

	if got := due(t, s); !slices.Equal(got, []string{"journal/2", "journal/3", "journal/4"}) {
		t.Errorf("notes after entry 1 has failed: got %v, want those of its dependents 2, 3 and 4", got)
	}
	waiting()
	if _, err := s.Journal.RetryEntry(t.Context(), 1, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := due(t, s); !slices.Equal(got, []string{"journal/1", "journal/2", "journal/3", "journal/4"}) {
		t.Errorf("notes after the retry of entry 1: got %v, want those of entries 1 to 4", got)
	}
}
