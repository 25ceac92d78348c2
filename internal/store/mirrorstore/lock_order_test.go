package mirrorstore_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// A second writer holds the lock of an object. While a transaction waits for this lock, it must not hold the
// lock of the object's entry.
func TestLockOrder_ObjectBeforeEntry(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	project := "p"
	made, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, url, `update journal_entry set state = 'failed', attempt = 1, taken_at = now()`)
	all, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 1})
	if err != nil || len(all) != 1 {
		t.Fatalf("read the entry of a new network: got %v, error %v; want one entry", all, err)
	}
	run, err := s.Mirror.StartRun(t.Context(), journal.Run{Kind: contract.KeyRecovery, Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}

	err = storetest.NewRival(t, url).RunAgainst(func() error {
		_, ok, err := s.Mirror.RecoverEntry(t.Context(), run.ID, all[0], nil)
		if !ok {
			t.Errorf("recover a failed entry: got ok=false, want the recovery of the entry")
		}
		return err
	}, lock("network", made[0].ID), `select from journal_entry where seq = 1 for update nowait`)

	if err != nil {
		t.Error(err)
	}
}

// Objects of the same type are locked in the order of their IDs.
func TestLockOrder_ObjectsByID(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	project := "p"
	drafts := []network.NetworkChange{{Project: &project}, {Project: &project}}
	made, err := s.Network.CreateNetworks(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	lower, higher := made[0].ID, made[1].ID
	if lower.String() > higher.String() {
		lower, higher = higher, lower
	}
	run, err := s.Mirror.StartRun(t.Context(), journal.Run{Kind: contract.KeyAudit, Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var findings []journal.Finding
	for _, id := range []uuid.UUID{higher, lower} {
		o := journal.Ref{Type: "network", ID: id.String()}
		findings = append(findings, journal.Finding{Object: o, Kind: journal.Missing})
	}
	now, err := s.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	err = storetest.NewRival(t, url).RunAgainst(func() error {
		_, err := s.Mirror.RepairFindings(t.Context(), run.ID, findings, now, false)
		return err
	}, lock("network", lower), lock("network", higher)+` nowait`)

	if err != nil {
		t.Error(err)
	}
}

// lock returns the SQL statement that locks a row.
func lock(table string, id uuid.UUID) string {
	return fmt.Sprintf(`select from %s where id = '%s' for update`, table, id)
}
