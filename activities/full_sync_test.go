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

func TestControllerThatLostEverythingGetsItBackInOrder(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.everyType(m.grow(3)[0])
	m.drain()
	m.equal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	before := len(m.odl.Requests())

	r := m.finish(m.start(contract.KeyFullSync, 0))

	if r.State != journal.RunDone {
		t.Fatalf("%s", r.Sentence())
	}
	const all = 3*4 + 18 + 1 // with the canary
	if d := cmp.Diff(map[string]int{"POST": all}, m.took(before)); d != "" {
		t.Error(d)
	}
	log := m.odl.Requests()
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Applied {
			if log[i].ID != journal.Canary().Object.ID {
				t.Errorf("the canary is not the last: %+v", log[i])
			}
			break
		}
	}
	if !strings.Contains(r.Sentence(), "port 6 of 6 (mirrored 6 of 6)") {
		t.Errorf("progress: %s", r.Sentence())
	}
	m.equal()
}

func TestFullSyncSendsOnlyWhatIsMissingOrDifferent(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(10)
	m.drain()
	m.finish(m.start(contract.KeyFullSync, 0))
	lost, err := m.odl.LoseShare(0.3, 1)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := m.odl.ChangeShare(0.3, 2)
	if err != nil || len(lost) == 0 || len(changed) == 0 {
		t.Fatal(len(lost), len(changed), err)
	}
	before := len(m.odl.Requests())

	m.finish(m.start(contract.KeyFullSync, 0))

	took := m.took(before)
	if took["POST"] != len(lost) || took["PUT"] > len(changed) || took["PUT"] < len(changed)-1 || took["DELETE"] != 0 { // the canary may be among them
		t.Errorf("took %v; lost %d, changed %d", took, len(lost), len(changed))
	}
	m.equal()
}

// The controller's own loss is found by the missing canary, once it is well.
func TestWatchStartsAFullSyncWhenTheCanaryIsMissing(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(1)
	m.drain()
	open := func() int64 {
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
		if id := open(); id != 0 {
			t.Fatalf("run %d was started though the controller is not well: %+v", id, f)
		}
		m.odl.ClearFaults()
	}
	id := open()
	if id == 0 || open() != id {
		t.Fatalf("run %d, then another one", id)
	}
	if r := m.finish(journal.Run{ID: id, Kind: contract.KeyFullSync}); r.State != journal.RunDone {
		t.Fatalf("%s", r.Sentence())
	}
	if again := open(); again != 0 {
		t.Errorf("run %d was started though the canary is there", again)
	}
}

// Whatever the controller seems to have, a full sync is begun in time if the operator wants that.
func TestFullSyncIsBegunByItsSchedule(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(1)
	m.drain()
	m.finish(m.start(contract.KeyFullSync, 0))
	begun := func(every time.Duration) bool {
		m.acts.FullSyncInterval = every
		if err := m.acts.StartDueRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync)
		if err != nil {
			t.Fatal(err)
		}
		return r.ID != 0
	}
	if begun(0) || begun(time.Hour) {
		t.Error("it was begun though it is not due")
	}
	storetest.Exec(t, m.url, `update mirror_run set created_at = created_at - interval '2 hours'`)
	if begun(0) || !begun(time.Hour) {
		t.Error("it was begun though nobody wants that, or was not though it is due")
	}
}

// What the API deletes while a full sync runs stays deleted, whatever the controller had when.
func TestDeletionDuringAFullSyncWins(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	nets := m.grow(2)
	m.drain()
	ports, err := m.store.Network.Ports(t.Context(), db.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	r := m.start(contract.KeyFullSync, 0)
	if err := m.store.Network.DeletePort(t.Context(), ports[0].ID, nil); err != nil { // before the sync looks
		t.Fatal(err)
	}
	for range 3 { // networks, subnets and ports are recorded
		if _, err := m.step(contract.KeyFullSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.store.Network.DeletePort(t.Context(), ports[1].ID, nil); err != nil { // after it has looked
		t.Fatal(err)
	}

	m.finish(r)

	m.drain()
	for _, p := range ports[:2] {
		if m.odl.Record("port", p.ID.String()).Object != nil {
			t.Errorf("port %s came back", p.ID)
		}
	}
	if len(nets) != 2 {
		t.Fatal(nets)
	}
	m.equal()
}

func TestFullSyncWaitsForAControllerInTroubleAndGoesOn(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(1)
	r := m.start(contract.KeyFullSync, 0)
	m.odl.InjectFaults(odltest.Fault{Method: "GET", Status: 503, Times: 2})
	for range 2 {
		if p, err := m.step(contract.KeyFullSync); err == nil {
			t.Errorf("a step succeeded: %+v", p)
		}
	}
	if r := m.finish(r); r.State != journal.RunDone {
		t.Errorf("%s", r.Sentence())
	}
	m.equal()
}

func TestFullSyncWithoutTheCanaryIfATypeCannotBeCompared(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(1)
	r := m.start(contract.KeyFullSync, 0)
	m.odl.InjectFaults(odltest.Fault{Method: "GET", Type: "port", Status: 500})

	r = m.finish(r)

	if r.State != journal.RunFailed || !strings.Contains(r.Note, "port: GET /ports: the controller answered 500") {
		t.Errorf("%s", r.Sentence())
	}
	if m.odl.Record("network", journal.Canary().Object.ID).Object != nil {
		t.Error("the canary says that all is there")
	}
}

// The plan is what an audit found; a repair does exactly that, and not what has become wrong since.
func TestRepairDoesExactlyThePlan(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	nets := m.grow(4)
	m.drain()
	if _, err := m.odl.ChangeShare(1, 1); err != nil {
		t.Fatal(err)
	}
	stray := m.grow(1)[0] // the controller gets it, berth forgets it
	m.drain()
	forget(m, stray.ID)
	audit := m.finish(m.start(contract.KeyAudit, 0))
	if audit.Note != "0 missing, 16 different, 4 extra" {
		t.Fatalf("%s", audit.Sentence())
	}
	if _, err := m.store.Network.UpdateNetwork(t.Context(), nets[0].ID, rename("newer"), nil); err != nil { // after the plan
		t.Fatal(err)
	}
	m.drain()
	before := len(m.odl.Requests())

	r := m.finish(m.start(contract.KeyRepair, audit.ID))

	if d := cmp.Diff(map[string]int{"PUT": 15, "DELETE": 4}, m.took(before)); r.State != journal.RunDone || d != "" {
		t.Errorf("%s %s", r.Sentence(), d)
	}
	found, err := m.store.Mirror.Findings(t.Context(), audit.ID, journal.Ref{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if newer := f.Object.ID == nets[0].ID.String(); f.Outcome == "" || newer != strings.Contains(f.Outcome, "the journal changes it") {
			t.Errorf("%s %s: %q", f.Object.Type, f.Object.ID, f.Outcome)
		}
	}
	m.equal()
}

func TestRepairNeedsAFinishedAudit(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	audit := m.start(contract.KeyAudit, 0)
	for _, plan := range []int64{audit.ID, audit.ID + 1, 0} {
		if _, err := m.store.Mirror.StartRun(t.Context(), journal.Run{Kind: contract.KeyRepair, Plan: plan}); err == nil {
			t.Errorf("a repair of %d was started", plan)
		}
	}
	if _, err := m.step(contract.KeyRecovery); err != nil {
		t.Error(err)
	}
}

func TestAuditLooksThroughEveryTypeAndLeavesWhatMovesAlone(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.everyType(m.grow(1)[0])
	m.drain()
	m.foreign(object(journal.Create, "router", uuid.NewString(), nil)) // on its way
	m.equal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}

	r := m.finish(m.start(contract.KeyAudit, 0))

	if r.Note != "22 missing, 0 different, 0 extra" {
		t.Errorf("%s", r.Sentence())
	}
}

func rename(name string) network.NetworkChange { return network.NetworkChange{Name: &name} }

// forget removes a network with all that is on it, and its history, behind the journal's back.
func forget(m *mirror, id uuid.UUID) {
	m.Helper()
	for _, sql := range []string{
		`delete from port where network_id = $1`, `delete from dhcp_binding where network_id = $1`, `delete from subnet where network_id = $1`,
		`delete from network where id = $1`,
	} {
		storetest.Exec(m, m.url, sql, id)
	}
	storetest.Exec(m, m.url, `update journal_entry set finished_at = finished_at - interval '1 hour' where finished_at is not null`)
}

// Between a look at the controller and the record of what it lacks, the API may have been faster.
func TestStaleFindingIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	nets := m.grow(3)
	m.drain()
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
	m.drain()
	if _, err := m.store.Network.UpdateNetwork(t.Context(), nets[1].ID, rename("newer"), nil); err != nil {
		t.Fatal(err)
	}
	later, err := m.store.Journal.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run := m.start(contract.KeyFullSync, 0)
	for what, tt := range map[string]struct {
		typ, kind string
		id        uuid.UUID
		since     journalstore.Mark
		want      string
	}{
		"deleted since the look":   {"port", journal.Missing, ports[0].ID, since, "the journal changes it anyway"},
		"deleted before":           {"port", journal.Missing, ports[0].ID, later, "it was deleted meanwhile"},
		"on its way":               {"network", journal.Different, nets[1].ID, later, "the journal changes it anyway"},
		"made again":               {"network", journal.Extra, nets[2].ID, later, "it exists again"},
		"never was, and no longer": {"subnet", journal.Different, uuid.New(), later, "it was deleted meanwhile"},
	} {
		f := journal.Finding{Object: journal.Ref{Type: tt.typ, ID: tt.id.String()}, Kind: tt.kind, Data: []byte(`{}`)}
		got, err := m.store.Mirror.Mend(t.Context(), run.ID, []journal.Finding{f}, tt.since, false)
		if err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %v, %v; want %q", what, got, err, tt.want)
		}
	}
	if open, _, err := m.store.Mirror.Unsettled(t.Context(), run.ID); err != nil || open != 0 {
		t.Errorf("%d entries were recorded, %v", open, err)
	}
}
