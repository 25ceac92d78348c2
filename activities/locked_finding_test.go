package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/odl"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// listHook is a controller that calls a function after each list of objects.
type listHook struct {
	activities.Controller
	after func()
}

func (c listHook) List(
	ctx context.Context,
	path, key string,
	each func(json.RawMessage) error,
) (odl.Response, error) {
	got, err := c.Controller.List(ctx, path, key, each)
	c.after()
	return got, err
}

// lockPort locks a port in a transaction of another session, and returns the port's ID and a function that
// ends the transaction.
func (m *mirrorFixture) lockPort() (id string, end func()) {
	m.Helper()
	ports, err := m.store.Network.Ports(m.Context(), db.Listing{})
	if err != nil || len(ports) == 0 {
		m.Fatalf("list the ports of the test: got %d ports, error %v; want some", len(ports), err)
	}
	id = ports[0].ID.String()
	rival := storetest.NewRival(m.T, m.url)
	rival.Do(`begin`)
	rival.Do(fmt.Sprintf(`select from port where id = '%s' for update`, id))
	return id, func() { rival.Do(`rollback`) }
}

// oneNotRepaired is in the sentence of a run that has not repaired one object.
const oneNotRepaired = "1 not repaired, because other transactions kept them locked"

func TestFullSync_LockedObjectDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(2)
	m.drainJournal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	locked, end := m.lockPort()

	r := m.finishRun(m.startRun(contract.KeyFullSync, 0))

	if r.State != journal.RunDone || !strings.Contains(r.Sentence(), oneNotRepaired) {
		t.Errorf("full sync while a port is locked: got %q, want it to end successfully with %q", r.Sentence(), oneNotRepaired)
	}
	audit := m.finishRun(m.startRun(contract.KeyAudit, 0))
	if want := "1 missing, 0 different, 0 extra"; audit.Note != want || m.odl.Record("port", locked).Object != nil {
		t.Errorf("audit after a full sync while a port was locked: got %q, want %q: the port", audit.Note, want)
	}
	end()
	m.finishRun(m.startRun(contract.KeyFullSync, 0))
	m.checkInSync()
}

// All networks are locked while the full sync compares the first page of them, and free when it has compared
// the last one.
func TestFullSync_ReturnsToLockedObjects(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	drafts := slices.Repeat([]network.NetworkChange{{Name: ptr("n"), Project: ptr("demo")}}, 101)
	if _, err := m.store.Network.CreateNetworks(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	m.drainJournal()
	if changed, err := m.odl.ChangeShare(1, 1); err != nil || len(changed) != len(drafts) {
		t.Fatalf("change all networks at the controller: got %d, error %v; want %d", len(changed), err, len(drafts))
	}
	rival := storetest.NewRival(t, m.url)
	rival.Do(`begin`)
	rival.Do(`select from network for update`)
	m.acts.ODL = listHook{m.acts.ODL, sync.OnceFunc(func() { rival.Do(`commit`) })}

	r := m.finishRun(m.startRun(contract.KeyFullSync, 0))

	if r.State != journal.RunDone || strings.Contains(r.Sentence(), "not repaired") {
		t.Errorf("full sync of networks that were locked for some time: got %q, want all repaired", r.Sentence())
	}
	m.checkInSync()
}

func TestRepair_LockedObjectDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(2)
	m.drainJournal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	audit := m.finishRun(m.startRun(contract.KeyAudit, 0))
	locked, end := m.lockPort()

	r := m.finishRun(m.startRun(contract.KeyRepair, audit.ID))

	if r.State != journal.RunDone || !strings.Contains(r.Sentence(), oneNotRepaired) {
		t.Errorf("repair while a port is locked: got %q, want it to end successfully with %q", r.Sentence(), oneNotRepaired)
	}
	found, err := m.store.Mirror.Findings(t.Context(), audit.ID, journal.Ref{}, 100)
	if err != nil || len(found) != 8 {
		t.Fatalf("findings of the audit: got %d, error %v; want 8", len(found), err)
	}
	for _, f := range found {
		if (f.Outcome == journal.FindingLocked) != (f.Object.ID == locked) {
			t.Errorf("repair of %s %s: got the outcome %q; want %q for the locked port only",
				f.Object.Type, f.Object.ID, f.Outcome, journal.FindingLocked)
		}
	}
	end()
	m.finishRun(m.startRun(contract.KeyRepair, audit.ID))
	m.checkInSync()
}
