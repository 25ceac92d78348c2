package journalstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

// completeEntry completes an entry, and returns the claimed notes of the entries that no longer have a
// blocker.
func completeEntry(t *testing.T, s *store.Store, seq int64, limit int) []contract.Note {
	t.Helper()
	e := take(t, s, seq).Entry
	_, notes, err := s.Journal.SaveOutcomeAndClaimNotes(t.Context(), seq, e.Attempt,
		journal.Outcome{Kind: journal.OutcomeDone}, limit)
	if err != nil {
		t.Fatalf("complete entry %d: %v", seq, err)
	}
	slices.SortFunc(notes, func(a, b contract.Note) int { return strings.Compare(a.ID, b.ID) })
	return notes
}

// recordFamily records a network, two ports on it, and an update of the first port: the entries 1 to 4.
func recordFamily(t *testing.T) (*store.Store, string) {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"),
		change(t, "create port q", "network n"), change(t, "update port p", "network n"))
	return s, url
}

func TestSaveOutcomeAndClaimNotes_ClaimsNotesOfUnblockedEntries(t *testing.T) {
	t.Parallel()
	s, url := recordFamily(t)

	notes := completeEntry(t, s, 1, 8)

	attributes := contract.Attributes{Project: "demo", Resource: "port"}
	want := []contract.Note{
		{
			Nudge: contract.Nudge{
				Workflow:   contract.JournalEntry,
				ID:         "journal/2",
				NotRunning: true,
				Summary:    "create port create port p",
				Attributes: attributes,
			},
			Version:  1,
			Attempts: 1,
		},
		{
			Nudge: contract.Nudge{
				Workflow:   contract.JournalEntry,
				ID:         "journal/3",
				NotRunning: true,
				Summary:    "create port create port q",
				Attributes: attributes,
			},
			Version:  1,
			Attempts: 1,
		},
	}
	if diff := cmp.Diff(want, notes, storetest.IgnoreCreation); diff != "" {
		t.Errorf("claimed notes (-want +got):\n%s", diff)
	}
	if blockers := waitsFor(t, s, 4); !slices.Equal(blockers, []int64{2}) {
		t.Errorf("blockers of the update: got %v, want only entry 2", blockers)
	}
	if got := due(t, s); len(got) > 0 {
		t.Errorf("due notes: got %v, want none: entry 1 is completed, 2 and 3 are claimed, 4 is blocked", got)
	}
	storetest.Exec(t, url,
		`update note set due_at = due_at - $1::interval where attempts > 0`, outbox.ClaimDuration)
	if got := due(t, s); !slices.Equal(got, []string{"journal/2", "journal/3"}) {
		t.Errorf("due notes after the claim has expired: got %v, want journal/2 and journal/3", got)
	}
}

func TestSaveOutcomeAndClaimNotes_RelayGetsNotesBeyondLimit(t *testing.T) {
	t.Parallel()
	s, _ := recordFamily(t)

	notes := completeEntry(t, s, 1, 1)

	if len(notes) != 1 || notes[0].ID != "journal/2" {
		t.Errorf("claim one note: got %+v, want that of entry 2", notes)
	}
	if got := due(t, s); !slices.Equal(got, []string{"journal/3"}) {
		t.Errorf("due notes: got %v, want only journal/3", got)
	}
}

func TestSaveOutcomeAndClaimNotes_WaitingWorkflowIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	s, url := recordFamily(t)
	storetest.Exec(t, url, `update note set due_at = now() where workflow_id = 'journal/2'`)
	if started := due(t, s); !slices.Equal(started, []string{"journal/1", "journal/2"}) {
		t.Fatalf("due notes before entry 1 is sent: got %v, want journal/1 and journal/2", started)
	}

	notes := completeEntry(t, s, 1, 8)

	if len(notes) != 2 || notes[0].ID != "journal/2" || notes[0].NotRunning || notes[0].Version != 2 {
		t.Errorf(
			"claimed notes: got %+v, want first that of entry 2 with version 2 for a workflow that may be running",
			notes,
		)
	}
}

// If a workflow is running, its note has been delivered. If another nudge was merged into the note since
// then, the workflow must read the entry again, so the note stays unless the entry is completed.
func TestSaveOutcome_DeletesTheNoteOfTheOwnWorkflow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		kind    journal.OutcomeKind
		version int
		want    []string
	}{
		{"completed", journal.OutcomeDone, 1, []string{}},
		{"completed after another nudge", journal.OutcomeDone, 2, []string{}},
		{"retry", journal.OutcomeRetry, 1, []string{}},
		{"retry after another nudge", journal.OutcomeRetry, 2, []string{"journal/1"}},
		{"failed", journal.OutcomeFailed, 1, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			recordAll(t, s, change(t, "create network n"))
			storetest.ClaimNotes(t, s)
			storetest.Exec(t, url, `update note set version = $1`, tt.version)

			settle(t, s, 1, tt.kind)

			storetest.Exec(t, url, `update note set due_at = now()`)
			if got := due(t, s); !slices.Equal(got, tt.want) {
				t.Errorf("notes after the outcome: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSaveSharedOutcome_EntryKeepsItsNote(t *testing.T) {
	t.Parallel()
	for kind, want := range map[journal.OutcomeKind][]string{
		journal.OutcomeDone:     {}, // due after ClaimDuration
		journal.OutcomeRetry:    {"journal/1"},
		journal.OutcomeRejected: {"journal/1"},
		journal.OutcomeFailed:   {"journal/1", "journal/2"}, // entry 2 waits for entry 1, which has failed
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			recordAll(t, s, change(t, "create network n"), change(t, "create port p", "network n"))
			age(t, url)
			_, claimed := takeWaiting(t, s, now(t, s), 1)

			if _, err := s.Journal.SaveSharedOutcome(t.Context(), 1, claimed[1].Entry.Attempt, journal.Outcome{Kind: kind, RetryAfter: time.Hour, Reason: "no"}); err != nil {
				t.Fatal(err)
			}

			if got := due(t, s); !slices.Equal(got, want) {
				t.Errorf("due notes after the outcome: got %v, want %v", got, want)
			}
			if kind != journal.OutcomeDone {
				return
			}
			storetest.Exec(t, url, `update note set due_at = now()`)
			if got := due(t, s); !slices.Equal(got, []string{"journal/1", "journal/2"}) {
				t.Errorf(
					"notes after the completion: got %v, want journal/1, whose workflow records the outcome, and journal/2",
					got,
				)
			}
			if e := take(t, s, 1).Entry; e.State != journal.Completed || *e.SentBy != 99 {
				t.Errorf("entry 1: got %+v, want it completed with SentBy 99", e)
			}
			storetest.Exec(t, url, `update note set due_at = now()`)
			if got := due(t, s); !slices.Equal(got, []string{"journal/2"}) {
				t.Errorf(
					"notes after the workflow of entry 1 has read its row: got %v, want only journal/2",
					got,
				)
			}
		})
	}
}
