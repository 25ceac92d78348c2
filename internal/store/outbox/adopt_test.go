package outbox_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestAdopt_NewNamespaceGetsANoteForEveryRow(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if n, err := s.Outbox.Adopt(t.Context(), "first"); err != nil || n != 0 {
		t.Fatalf("adopt a namespace with an empty database: got %d notes, error %v; want 0", n, err)
	}
	project, name := "p", "blue"
	nets, err := s.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: &project, Name: &name}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Network.CreatePorts(t.Context(), []network.PortChange{{
		Network:        &nets[0].ID,
		Project:        &project,
		Name:           &name,
		SecurityGroups: &[]uuid.UUID{},
	}}); err != nil {
		t.Fatal(err)
	}
	for notes := claimFor(t, s, "first"); len(notes) > 0; notes = claimFor(t, s, "first") {
		if err := s.Outbox.Settle(t.Context(), "first", notes); err != nil {
			t.Fatal(err)
		}
	}

	again, err := s.Outbox.Adopt(t.Context(), "first")
	if err != nil || again != 0 {
		t.Errorf("adopt the same namespace again: got %d notes, error %v; want 0", again, err)
	}
	told, err := s.Outbox.Adopt(t.Context(), "second")
	if err != nil || told != 3 {
		t.Errorf("adopt another namespace: got %d notes, error %v; want 3", told, err)
	}

	got := map[string]int{}
	for _, n := range claimFor(t, s, "second") {
		got[n.Workflow]++
		if n.NotRunning {
			t.Errorf(
				"note for %s: got NotRunning true, want false, because the workflow may be running",
				n.ID,
			)
		}
	}
	if d := cmp.Diff(map[string]int{"JournalEntry": 2, "Port": 1}, got); d != "" {
		t.Error(d)
	}
}

func TestNotes_AreClaimedOnlyForTheBoundNamespace(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if _, err := s.Outbox.Adopt(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})
	taken := claimFor(t, s, "first")
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/2"})

	if _, err := s.Outbox.Adopt(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}

	if notes := claimFor(t, s, "first"); len(notes) > 0 {
		t.Errorf("claim notes for the namespace that is no longer bound: got %+v, want none", notes)
	}
	if err := s.Outbox.Settle(t.Context(), "first", taken); err != nil {
		t.Fatal(err)
	}
	if notes := claimFor(t, s, "second"); len(taken) != 1 || len(notes) != 2 {
		t.Errorf(
			"notes claimed for the first namespace: %+v, want one; notes claimed for the second namespace: %+v, want both",
			taken,
			notes,
		)
	}
	for namespace, want := range map[string]bool{"first": false, "second": true} {
		if got, err := s.Outbox.IsBoundTo(t.Context(), namespace); err != nil || got != want {
			t.Errorf(
				"database is bound to the namespace %q: got %t, error %v; want only the second namespace",
				namespace, got, err,
			)
		}
	}
}

func TestRestartWorkflows_OnlyForExistingRows(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	project := "p"
	if _, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project}, {Project: &project}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Outbox.Settle(t.Context(), "", storetest.ClaimNotes(t, s)); err != nil {
		t.Fatal(err)
	}

	n, err := s.Outbox.RestartWorkflows(t.Context(),
		[]string{"journal/2", "journal/99", "port/not-a-uuid", "nonsense"})

	if err != nil || n != 1 {
		t.Errorf("restart four workflows, one of which has a row: got %d notes, error %v; want 1", n, err)
	}
	if notes := storetest.ClaimNotes(t, s); len(notes) != 1 || notes[0].ID != "journal/2" {
		t.Errorf("want a note for journal/2 alone, got %+v", notes)
	}
	if n, err := s.Outbox.RestartWorkflows(t.Context(), []string{}); err != nil || n != 0 {
		t.Errorf("restart workflows without IDs: got %d notes, error %v; want 0", n, err)
	}
}
