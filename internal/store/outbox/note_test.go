package outbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func enqueue(t *testing.T, s *store.Store, n contract.Nudge) {
	t.Helper()
	if err := s.DB.InTx(t.Context(), func(tx db.Tx) error { return outbox.Enqueue(t.Context(), tx, n) }); err != nil {
		t.Fatal(err)
	}
}

func claimFor(t *testing.T, s *store.Store, namespace string) []contract.Note {
	t.Helper()
	notes, err := s.Outbox.Claim(t.Context(), namespace, 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return notes
}

func TestNote_SeveralNudgesMakeOneNote(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	n := contract.Nudge{
		Workflow:   contract.Port,
		ID:         "port/1",
		NotRunning: true,
		Summary:    "p",
	}

	enqueue(t, s, n)
	n.NotRunning = false
	enqueue(t, s, n)
	notes := storetest.ClaimNotes(t, s)

	n.NotRunning = true
	want := []contract.Note{{Nudge: n, Version: 2, Attempts: 1}}
	if d := cmp.Diff(want, notes, storetest.IgnoreCreation); d != "" {
		t.Error(d)
	}
	if again := storetest.ClaimNotes(t, s); len(again) != 0 {
		t.Errorf("claim notes while they are claimed: got %v, want none", again)
	}
}

func TestNote_NudgeDuringDeliveryStaysDue(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1", NotRunning: true})

	taken := storetest.ClaimNotes(t, s)
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})
	if err := s.Outbox.Settle(t.Context(), "", taken); err != nil {
		t.Fatal(err)
	}

	again := storetest.ClaimNotes(t, s)
	if len(again) != 1 || again[0].NotRunning || again[0].Version != 2 {
		t.Errorf(
			"claim notes after a nudge during the delivery: got %+v, want one note of version 2 without NotRunning",
			again,
		)
	}
	if err := s.Outbox.Settle(t.Context(), "", again); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Outbox.Backlog(t.Context()); err != nil || b.Notes != 0 {
		t.Errorf("backlog after all notes are settled: got %+v, error %v; want 0 notes", b, err)
	}
}

// A relay that is slower than its claim settles a note that another relay has delivered meanwhile.
func TestNote_SlowRelaySettlesNoNewerNoteOfTheWorkflow(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	nudge := contract.Nudge{Workflow: contract.Port, ID: "port/1"}
	enqueue(t, s, nudge)
	slow := storetest.ClaimNotes(t, s)
	storetest.Exec(t, url, `update note set due_at = now()`) // the claim expires
	if err := s.Outbox.Settle(t.Context(), "", storetest.ClaimNotes(t, s)); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, nudge)

	if err := s.Outbox.Settle(t.Context(), "", slow); err != nil {
		t.Fatal(err)
	}
	if left := storetest.ClaimNotes(t, s); len(left) != 1 {
		t.Errorf("claim notes after a slow relay has settled an earlier one: got %+v, want the newer note", left)
	}
}

func TestNote_EarlierDueTimeOfALaterNudgeWins(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	enqueue(t, s, contract.Nudge{
		Workflow:   contract.JournalEntry,
		ID:         "journal/1",
		NotRunning: true,
		Delay:      time.Hour,
	})
	if early := storetest.ClaimNotes(t, s); len(early) != 0 {
		t.Fatalf("claim notes before they are due: got %v, want none", early)
	}

	enqueue(t, s, contract.Nudge{Workflow: contract.JournalEntry, ID: "journal/1"})

	if notes := storetest.ClaimNotes(t, s); len(notes) != 1 || !notes[0].NotRunning {
		t.Errorf("claim notes after an earlier nudge: got %+v, want one note with NotRunning", notes)
	}
}

func TestNote_PortStatusIsDroppedByASecondNudge(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	n := contract.Nudge{
		Workflow:   contract.Port,
		ID:         "port/1",
		NotRunning: true,
		PortStatus: &contract.PortStatus{Status: "DOWN"},
	}
	joined := n
	joined.ID = "port/2"

	enqueue(t, s, n)
	enqueue(t, s, joined)
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: joined.ID})

	got := map[string]*contract.PortStatus{}
	for _, note := range storetest.ClaimNotes(t, s) {
		got[note.ID] = note.PortStatus
	}
	want := map[string]*contract.PortStatus{"port/1": {Status: "DOWN"}, "port/2": nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNote_IsDueSinceTheSameTimeUntilItIsDelivered(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	overdue := func() (found []string) {
		t.Helper()
		all, err := s.Report.Overdue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			found = append(found, o.Object+" for "+o.For.Truncate(time.Hour).String())
		}
		return found
	}
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})
	storetest.Exec(t, url, `update note set due_at = due_at - interval '1 hour'`)
	want := []string{"port/1 for 1h0m0s"}
	if d := cmp.Diff(want, overdue()); d != "" {
		t.Errorf("before the first attempt (-want +got):\n%s", d)
	}

	notes := storetest.ClaimNotes(t, s)
	if d := cmp.Diff(want, overdue()); d != "" {
		t.Errorf("during an attempt (-want +got):\n%s", d)
	}
	if err := s.Outbox.Defer(t.Context(), notes[0], time.Hour, "Temporal is away"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, overdue()); d != "" {
		t.Errorf("after a failed attempt (-want +got):\n%s", d)
	}

	// the delivered note stays, because this nudge is newer
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})
	if err := s.Outbox.Settle(t.Context(), "", notes); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string(nil), overdue()); d != "" {
		t.Errorf("after the delivery (-want +got):\n%s", d)
	}
}
