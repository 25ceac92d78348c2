package outbox_test

import (
	"context"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestClaim_SkipsLockedNotes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	for _, id := range []string{"port/1", "port/2"} {
		enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: id})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`select from note where workflow_id = 'port/1' for update`)

	notes, err := s.Outbox.Claim(ctx, "", 10, time.Minute)

	rival.Do(`rollback`)
	if err != nil || len(notes) != 1 || notes[0].ID != "port/2" {
		t.Errorf("claim notes while port/1 is locked: got %+v, error %v; want only port/2", notes, err)
	}
}

// A second writer holds the lock of a note. While a transaction waits for this lock, it must not hold the
// lock of a note with a higher workflow ID.
func TestLockOrder_RestartedWorkflowsByID(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	project := "p"
	drafts := []network.NetworkChange{{Project: &project}, {Project: &project}}
	if _, err := s.Network.CreateNetworks(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}

	err := storetest.NewRival(t, url).RunAgainst(func() error {
		n, err := s.Outbox.RestartWorkflows(t.Context(), []string{"journal/2", "journal/1"})
		if n != 2 {
			t.Errorf("restart the workflows of two journal entries: got %d notes, want 2", n)
		}
		return err
	}, `select from note where workflow_id = 'journal/1' for update`,
		`select from note where workflow_id = 'journal/2' for update nowait`)

	if err != nil {
		t.Error(err)
	}
}
