package store_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

func leave(t *testing.T, s *store.Store, n contract.Nudge) {
	t.Helper()
	if err := store.Nudge(t.Context(), s, n); err != nil {
		t.Fatal(err)
	}
}

// claim takes the notes of rows that are entrusted to nobody.
func claim(t *testing.T, s *store.Store) []contract.Note {
	t.Helper()
	return claimFor(t, s, "")
}

func claimFor(t *testing.T, s *store.Store, namespace string) []contract.Note {
	t.Helper()
	notes, err := s.ClaimNotes(t.Context(), namespace, 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return notes
}

func TestNoteIsDeliveredOnceThoughNudgedOften(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	n := contract.Nudge{Workflow: contract.Port, ID: "port/1", NotRunning: true, Summary: "p"}

	leave(t, s, n)
	n.NotRunning = false
	leave(t, s, n)
	notes := claim(t, s)

	n.NotRunning = true
	want := []contract.Note{{Nudge: n, Version: 2, Attempts: 1}}
	if d := cmp.Diff(want, notes); d != "" {
		t.Error(d)
	}
	if again := claim(t, s); len(again) != 0 {
		t.Errorf("a claimed note was claimed again: %v", again)
	}
}

func TestNudgeDuringDeliveryIsNotLost(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	leave(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1", NotRunning: true})

	taken := claim(t, s)
	leave(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})
	if err := s.SettleNotes(t.Context(), "", taken); err != nil {
		t.Fatal(err)
	}

	again := claim(t, s)
	if len(again) != 1 || again[0].NotRunning || again[0].Version != 2 {
		t.Errorf("want the later nudge, no longer fresh, got %+v", again)
	}
	if err := s.SettleNotes(t.Context(), "", again); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Backlog(t.Context()); err != nil || b.Notes != 0 {
		t.Errorf("backlog %+v, error %v", b, err)
	}
}

func TestLaterNudgeBringsAWaitingNoteForward(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	leave(t, s, contract.Nudge{Workflow: contract.JournalEntry, ID: "journal/1", NotRunning: true, Delay: time.Hour})
	if early := claim(t, s); len(early) != 0 {
		t.Fatalf("claimed before it was due: %v", early)
	}

	leave(t, s, contract.Nudge{Workflow: contract.JournalEntry, ID: "journal/1"})

	if notes := claim(t, s); len(notes) != 1 || !notes[0].NotRunning {
		t.Errorf("want one fresh note, got %+v", notes)
	}
}

func TestWhatWasSeenCountsOnlyWhileNobodyElseNudges(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	n := contract.Nudge{Workflow: contract.Port, ID: "port/1", NotRunning: true, PortStatus: &contract.PortStatus{Status: "DOWN"}}
	joined := n
	joined.ID = "port/2"

	leave(t, s, n)
	leave(t, s, joined)
	leave(t, s, contract.Nudge{Workflow: contract.Port, ID: joined.ID})

	got := map[string]*contract.PortStatus{}
	for _, note := range claim(t, s) {
		got[note.ID] = note.PortStatus
	}
	want := map[string]*contract.PortStatus{"port/1": {Status: "DOWN"}, "port/2": nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
