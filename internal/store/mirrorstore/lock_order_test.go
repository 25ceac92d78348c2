package mirrorstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/storetest"
)

// A second writer holds the lock of an object. While a transaction waits for this lock, it must not hold the
// lock of the object's entry.
func TestLockOrder_ObjectBeforeEntry(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	mirrorstore.SetLockWait(s.Mirror, time.Hour)
	n := createNetwork(t, s)
	failed := failEntry(t, s, url)
	run := startRun(t, s, contract.KeyRecovery)

	err := storetest.NewRival(t, url).RunAgainst(func() error {
		_, ok, err := s.Mirror.RecoverEntry(t.Context(), run, failed, nil)
		if !ok {
			t.Errorf("recover a failed entry: got ok=false, want the recovery of the entry")
		}
		return err
	}, lock("network", n), `select from journal_entry where seq = 1 for update nowait`)

	if err != nil {
		t.Error(err)
	}
}

// createNetwork creates a network, whose entry has the number 1 if the network is the first object.
func createNetwork(t *testing.T, s *store.Store) uuid.UUID {
	t.Helper()
	made, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: new("p")}})
	if err != nil {
		t.Fatal(err)
	}
	return made[0].ID
}

// failEntry makes the only entry of the journal failed and returns it.
func failEntry(t *testing.T, s *store.Store, url string) journal.Entry {
	t.Helper()
	storetest.Exec(t, url, `update journal_entry set state = 'failed', attempt = 1, taken_at = now()`)
	all, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 2})
	if err != nil || len(all) != 1 {
		t.Fatalf("read the only entry of the journal: got %v, error %v; want one entry", all, err)
	}
	return all[0]
}

// startRun starts a run and returns its number.
func startRun(t *testing.T, s *store.Store, kind string) int64 {
	t.Helper()
	run, err := s.Mirror.StartRun(t.Context(), journal.Run{Kind: kind, Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

// A project can keep its network, the turn of the network and the entry locked without a pause. A recovery
// waits for none of them for long, because it then recovers the entries of other projects.
func TestRecoverEntry_WaitsOnlyShortlyForEachLock(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]func(id uuid.UUID) string{
		"turn of the network": func(id uuid.UUID) string {
			return fmt.Sprintf(`select pg_advisory_xact_lock_shared(hashtextextended('network %s', 0))`, id)
		},
		"network": func(id uuid.UUID) string { return lock("network", id) },
		"entry":   func(uuid.UUID) string { return `select from journal_entry where seq = 1 for share` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			n := createNetwork(t, s)
			failed := failEntry(t, s, url)
			run := startRun(t, s, contract.KeyRecovery)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			rival := storetest.NewRival(t, url)
			rival.Do(`begin`)
			rival.Do(held(n))

			_, ok, err := s.Mirror.RecoverEntry(ctx, run, failed, nil)
			if ok || !db.WasLocked(err) {
				t.Errorf("recover an entry while another session holds a lock: got %t, error %v; want false and an error for which WasLocked reports true",
					ok, err)
			}

			rival.Do(`rollback`)
			mirrorstore.SetLockWait(s.Mirror, time.Hour)
			if _, ok, err := s.Mirror.RecoverEntry(ctx, run, failed, nil); !ok || err != nil {
				t.Errorf("recover the entry after the end of the other session: got %t, error %v; want true", ok, err)
			}
		})
	}
}

// missing returns the findings that objects of a type are missing at the controller.
func missing(typ string, ids ...string) (findings []journal.Finding) {
	for _, id := range ids {
		findings = append(findings, journal.Finding{Object: journal.Ref{Type: typ, ID: id}, Kind: journal.Missing})
	}
	return findings
}

// A member can keep an object locked. A repair of several objects holds the locks of the others only as long
// as it takes to record their entries.
func TestRepairFindings_SkipsLockedObjects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		typ  string
		held string // SQL with the ID of the object
	}{
		"row":           {"network", `select from network where id = '%s' for update`},
		"advisory lock": {"router", `select pg_advisory_xact_lock(hashtextextended('mirror router/%s', 0))`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			var ids []string
			for range 2 {
				if tt.typ == "network" {
					ids = append(ids, createNetwork(t, s).String())
					continue
				}
				ids = append(ids, uuid.NewString())
				o := journal.Ref{Type: tt.typ, ID: ids[len(ids)-1]}
				c := journal.Change{Object: o, Operation: journal.Create, Data: json.RawMessage(`{"id":"` + o.ID + `"}`)}
				if _, err := s.Journal.RecordChanges(t.Context(), []journal.Change{c}); err != nil {
					t.Fatal(err)
				}
			}
			completeEntries(t, url, tt.typ)
			repair := newRepair(t, s)
			rival := storetest.NewRival(t, url)
			rival.Do(`begin`)
			rival.Do(fmt.Sprintf(tt.held, ids[1]))

			got := repair(missing(tt.typ, ids...)...)
			if !isRecorded(got[0]) || got[1] != journal.FindingLocked {
				t.Errorf("repair two objects, of which another session has locked the second one: got %q, want an entry for the first one only", got)
			}
			if got := repair(missing(tt.typ, ids[1])...); got[0] != journal.FindingLocked {
				t.Errorf("repair one object that another session has locked: got %q, want %q", got, journal.FindingLocked)
			}

			rival.Do(`rollback`)
			mirrorstore.SetLockWait(s.Mirror, time.Hour)
			if got := repair(missing(tt.typ, ids[1])...); !isRecorded(got[0]) {
				t.Errorf("repair the object after the end of the other session: got %q, want an entry", got)
			}
		})
	}
}

// The entries of two missing subnets wait for the entry of their network, which another session has locked.
func TestRepairFindings_WaitsOnlyShortlyForEntries(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	n := createNetwork(t, s)
	var ids []string
	for _, cidr := range []string{"10.0.0.0/24", "10.0.1.0/24"} {
		made, err := s.Network.CreateSubnets(t.Context(), []network.SubnetChange{
			{Network: &n, Project: new("p"), CIDR: new(netip.MustParsePrefix(cidr))},
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made[0].ID.String())
	}
	completeEntries(t, url, "subnet")
	repair := newRepair(t, s)
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`select from journal_entry where object_type = 'network' for update`)

	for i, outcome := range repair(missing("subnet", ids...)...) {
		if outcome != journal.FindingLocked {
			t.Errorf("repair two subnets while the entry of their network is locked: got %q for subnet %d, want %q",
				outcome, i, journal.FindingLocked)
		}
	}

	rival.Do(`rollback`)
	mirrorstore.SetLockWait(s.Mirror, time.Hour)
	for i, outcome := range repair(missing("subnet", ids...)...) {
		if !isRecorded(outcome) {
			t.Errorf("repair two subnets after the end of the other session: got %q for subnet %d, want an entry",
				outcome, i)
		}
	}
}

// completeEntries makes the entries of a type completed long ago.
func completeEntries(t *testing.T, url, typ string) {
	t.Helper()
	storetest.Exec(t, url, `
		update journal_entry
		set state = 'completed', finished_at = now() - interval '1 hour'
		where object_type = $1`, typ)
}

// newRepair starts a full sync and returns a function that repairs findings for it.
func newRepair(t *testing.T, s *store.Store) func(...journal.Finding) []string {
	t.Helper()
	run := startRun(t, s, contract.KeyFullSync)
	now, err := s.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(findings ...journal.Finding) []string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		outcomes, err := s.Mirror.RepairFindings(ctx, run, findings, now, false)
		if err != nil || len(outcomes) != len(findings) {
			t.Fatalf("repair %d findings: got the outcomes %q, error %v; want one outcome each", len(findings), outcomes, err)
		}
		return outcomes
	}
}

// isRecorded reports whether an outcome says that an entry is recorded.
func isRecorded(outcome string) bool {
	return strings.HasPrefix(outcome, "create is recorded as entry ")
}

// lock returns the SQL statement that locks a row.
func lock(table string, id uuid.UUID) string {
	return fmt.Sprintf(`select from %s where id = '%s' for update`, table, id)
}
