package activities_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/odl/odltest"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func TestFullSync_RestoresEmptyControllerInOrder(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createEveryType(m.createNetworks(3)[0])
	m.drainJournal()
	m.checkInSync()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	before := len(m.odl.Requests())

	r := m.finishRun(m.startRun(contract.KeyFullSync, 0))

	if r.State != journal.RunDone {
		t.Fatalf("state of the run: got %q, want it to end successfully", r.Sentence())
	}
	const all = 3*4 + 18 + 1 // 1 for the check network, see journal.Canary
	if d := cmp.Diff(map[string]int{"POST": all}, m.appliedWrites(before)); d != "" {
		t.Error(d)
	}
	log := m.odl.Requests()
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Applied {
			if log[i].ID != journal.Canary().Object.ID {
				t.Errorf("the last applied request is %+v, want the create of the check network", log[i])
			}
			break
		}
	}
	if !strings.Contains(r.Sentence(), "port 6 of 6 (mirrored 6 of 6)") {
		t.Errorf(
			"progress of the full sync: want it to contain \"port 6 of 6 (mirrored 6 of 6)\", got %s",
			r.Sentence(),
		)
	}
	m.checkInSync()
}

func TestFullSync_SendsOnlyMissingAndDifferentObjects(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(10)
	m.drainJournal()
	m.finishRun(m.startRun(contract.KeyFullSync, 0))
	lost, err := m.odl.LoseShare(0.3, 1)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := m.odl.ChangeShare(0.3, 2)
	if err != nil || len(lost) == 0 || len(changed) == 0 {
		t.Fatal(len(lost), len(changed), err)
	}
	before := len(m.odl.Requests())

	m.finishRun(m.startRun(contract.KeyFullSync, 0))

	writes := m.appliedWrites(before)
	// a changed check network is not updated
	if writes["POST"] != len(lost) || writes["PUT"] > len(changed) || writes["PUT"] < len(changed)-1 ||
		writes["DELETE"] != 0 {
		t.Errorf("applied writes: got %v; want %d creates and %d updates", writes, len(lost), len(changed))
	}
	m.checkInSync()
}

// If the check network (see journal.Canary) is missing in the controller, the controller has lost its data.
// StartDueRuns starts no full sync while the controller is unavailable.
func TestStartDueRuns_StartsFullSyncIfCanaryIsMissing(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(1)
	m.drainJournal()
	startDueRuns := func() int64 {
		if err := m.acts.StartDueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	for _, f := range []odltest.Fault{{Status: 404, Times: 2}, {Status: 503}, {Body: "<html>"}, {Break: odltest.BreakReset, Times: 3}} {
		m.odl.InjectFaults(f)
		if id := startDueRuns(); id != 0 {
			t.Fatalf(
				"want no full sync while the controller is unavailable; got run %d with the fault %+v",
				id,
				f,
			)
		}
		m.odl.ClearFaults()
	}
	id := startDueRuns()
	if id == 0 || startDueRuns() != id {
		t.Fatalf(
			"check twice for due runs: the first check opened run %d; want a full sync, and the same run from the second check",
			id,
		)
	}
	if r := m.finishRun(journal.Run{ID: id, Kind: contract.KeyFullSync}); r.State != journal.RunDone {
		t.Fatalf("state of the run: got %q, want it to end successfully", r.Sentence())
	}
	if again := startDueRuns(); again != 0 {
		t.Errorf("want no full sync while the controller has the check network; got run %d", again)
	}
	c := journal.Canary().Object
	if err := m.odl.Alter(c.Type, c.ID, nil); err != nil {
		t.Fatal(err)
	}
	second := startDueRuns()
	for run, want := range map[int64]string{id: "this is the first comparison with the controller", second: "the controller has lost its data"} {
		if r, err := m.store.Mirror.Run(t.Context(), run); err != nil || !strings.HasPrefix(r.Reason, want) {
			t.Errorf("full sync %d: got the reason %q, error %v; want %q", run, r.Reason, err, want)
		}
	}
}

// A scheduled full sync starts even if the controller has the check network (see journal.Canary), that is,
// has not lost its data.
func TestStartDueRuns_StartsScheduledFullSync(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(1)
	m.drainJournal()
	m.finishRun(m.startRun(contract.KeyFullSync, 0))
	started := func(interval time.Duration) bool {
		m.acts.FullSyncInterval = interval
		if err := m.acts.StartDueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID != 0
	}
	if started(0) || started(time.Hour) {
		t.Error("want no full sync before a full sync is due; got one")
	}
	storetest.Exec(t, m.url, `update mirror_run set created_at = created_at - interval '2 hours'`)
	if started(0) || !started(time.Hour) {
		t.Error(
			"two hours after the last full sync: want no full sync with the interval 0, and a full sync with the interval 1 h",
		)
	}
}

func TestFullSync_DoesNotRecreateObjectsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	nets := m.createNetworks(2)
	m.drainJournal()
	ports, err := m.store.Network.Ports(t.Context(), db.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	r := m.startRun(contract.KeyFullSync, 0)
	// before the sync reads the ports
	if err := m.store.Network.DeletePort(t.Context(), ports[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 { // entries for networks, subnets and ports are recorded
		if _, err := m.stepRun(contract.KeyFullSync); err != nil {
			t.Fatal(err)
		}
	}
	// after the sync has read the ports
	if err := m.store.Network.DeletePort(t.Context(), ports[1].ID, nil); err != nil {
		t.Fatal(err)
	}

	m.finishRun(r)

	m.drainJournal()
	for _, p := range ports[:2] {
		if m.odl.Record("port", p.ID.String()).Object != nil {
			t.Errorf(
				"the deleted port %s: want that the full sync does not create it in the controller, but it did",
				p.ID,
			)
		}
	}
	if len(nets) != 2 {
		t.Fatal(nets)
	}
	m.checkInSync()
}

func TestFullSync_ContinuesAfterControllerOutage(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(1)
	r := m.startRun(contract.KeyFullSync, 0)
	m.odl.InjectFaults(odltest.Fault{Method: "GET", Status: 503, Times: 2})
	for range 2 {
		if p, err := m.stepRun(contract.KeyFullSync); err == nil {
			t.Errorf("full sync while the controller is unavailable: got %+v from a step, want an error", p)
		}
	}
	if r := m.finishRun(r); r.State != journal.RunDone {
		t.Errorf("state of the run: got %q, want it to end successfully", r.Sentence())
	}
	m.checkInSync()
}

func TestFullSync_FailsWithoutCanaryIfTypeIsUnreadable(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(1)
	r := m.startRun(contract.KeyFullSync, 0)
	m.odl.InjectFaults(odltest.Fault{Method: "GET", Type: "port", Status: 500})

	r = m.finishRun(r)

	if r.State != journal.RunFailed ||
		!strings.Contains(r.Note, "port: GET /ports: the controller answered 500") {
		t.Errorf("state of the run: got %q, want it failed because GET /ports answered 500", r.Sentence())
	}
	if m.odl.Record("network", journal.Canary().Object.ID).Object != nil {
		t.Error("the failed full sync has created the check network, want it missing")
	}
}

// A repair changes only the objects that the audit found. A repair skips an object that has changed after the
// audit.
func TestRepair_AppliesOnlyFindingsOfAudit(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	nets := m.createNetworks(4)
	m.drainJournal()
	if _, err := m.odl.ChangeShare(1, 1); err != nil {
		t.Fatal(err)
	}
	unknown := m.createNetworks(1)[0] // the controller has this network, but its rows are deleted
	m.drainJournal()
	m.deleteNetworkRows(unknown.ID)
	audit := m.finishRun(m.startRun(contract.KeyAudit, 0))
	if audit.Note != "0 missing, 16 different, 4 extra" {
		t.Fatalf("audit: got %q, want 16 different and 4 extra objects", audit.Sentence())
	}
	// after the audit
	if _, err := m.store.Network.UpdateNetwork(t.Context(), nets[0].ID, nameChange("newer"), nil); err != nil {
		t.Fatal(err)
	}
	m.drainJournal()
	before := len(m.odl.Requests())

	r := m.finishRun(m.startRun(contract.KeyRepair, audit.ID))

	if d := cmp.Diff(map[string]int{"PUT": 15, "DELETE": 4}, m.appliedWrites(before)); r.State != journal.RunDone ||
		d != "" {
		t.Errorf(
			"result of the repair: %s; want 15 updates and 4 deletes, applied writes (-want +got): %s",
			r.Sentence(),
			d,
		)
	}
	found, err := m.store.Mirror.Findings(t.Context(), audit.ID, journal.Ref{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if newer := f.Object.ID == nets[0].ID.String(); f.Outcome == "" ||
			newer != strings.Contains(f.Outcome, "the journal changes it") {
			t.Errorf(
				"repair a finding about %s %s: got the outcome %q; want \"the journal changes it\" only for the network that was updated after the audit",
				f.Object.Type, f.Object.ID, f.Outcome,
			)
		}
	}
	m.checkInSync()
}

func TestRepair_NeedsFinishedAudit(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	audit := m.startRun(contract.KeyAudit, 0)
	for _, plan := range []int64{audit.ID, audit.ID + 1, 0} {
		if _, err := m.store.Mirror.StartRun(t.Context(), journal.Run{Kind: contract.KeyRepair, Plan: plan}); err == nil {
			t.Errorf(
				"a repair was started for audit %d, which is unfinished or does not exist; want a refusal",
				plan,
			)
		}
	}
	if _, err := m.stepRun(contract.KeyRecovery); err != nil {
		t.Error(err)
	}
}

func TestAudit_ComparesEveryTypeAndSkipsPendingObjects(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createEveryType(m.createNetworks(1)[0])
	m.drainJournal()
	// the entry of this router is pending
	m.recordChanges(newChange(journal.Create, "router", uuid.NewString(), nil))
	m.checkInSync()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}

	r := m.finishRun(m.startRun(contract.KeyAudit, 0))

	if r.Note != "22 missing, 0 different, 0 extra" {
		t.Errorf("state of the run: got %q, want 22 missing objects and no others", r.Sentence())
	}
}

func nameChange(name string) network.NetworkChange { return network.NetworkChange{Name: &name} }

// deleteNetworkRows deletes the rows of a network, its ports and its subnets, and records no journal entries
// for these deletions. deleteNetworkRows also makes all existing journal entries an hour old.
func (m *mirrorFixture) deleteNetworkRows(id uuid.UUID) {
	m.Helper()
	for _, sql := range []string{
		`delete from port where network_id = $1`, `delete from dhcp_binding where network_id = $1`, `delete from subnet where network_id = $1`,
		`delete from network where id = $1`,
	} {
		storetest.Exec(m, m.url, sql, id)
	}
	storetest.Exec(m, m.url,
		`update journal_entry set finished_at = finished_at - interval '1 hour' where finished_at is not null`)
}

// A full sync reads an object from the controller and later records a journal entry that corrects the object.
// If the object's row changes after the read and before the record, the full sync skips the object.
func TestMend_SkipsStaleFindings(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	nets := m.createNetworks(3)
	m.drainJournal()
	ports, err := m.store.Network.Ports(t.Context(), db.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	since, err := m.store.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.store.Network.DeletePort(t.Context(), ports[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	m.drainJournal()
	if _, err := m.store.Network.UpdateNetwork(t.Context(), nets[1].ID, nameChange("newer"), nil); err != nil {
		t.Fatal(err)
	}
	later, err := m.store.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run := m.startRun(contract.KeyFullSync, 0)
	for name, tt := range map[string]struct {
		typ, kind string
		id        uuid.UUID
		since     journalstore.Timestamp
		want      string
	}{
		"deleted after the read":  {"port", journal.Missing, ports[0].ID, since, "the journal changes it anyway"},
		"deleted before the read": {"port", journal.Missing, ports[0].ID, later, "it was deleted meanwhile"},
		"entry is pending":        {"network", journal.Different, nets[1].ID, later, "the journal changes it anyway"},
		"row exists again":        {"network", journal.Extra, nets[2].ID, later, "it exists again"},
		"row never existed":       {"subnet", journal.Different, uuid.New(), later, "it was deleted meanwhile"},
	} {
		f := journal.Finding{
			Object: journal.Ref{Type: tt.typ, ID: tt.id.String()},
			Kind:   tt.kind,
			Data:   []byte(`{}`),
		}
		got, err := m.store.Mirror.RepairFindings(t.Context(), run.ID, []journal.Finding{f}, tt.since, false)
		if err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("repair a stale finding, %s: got the outcome %v, error %v; want %q",
				name, got, err, tt.want)
		}
	}
	if open, _, err := m.store.Mirror.CountOpenEntries(t.Context(), run.ID); err != nil || open != 0 {
		t.Errorf("repair stale findings: %d entries were recorded, error %v; want 0", open, err)
	}
}
