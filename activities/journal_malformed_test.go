package activities_test

import (
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// Rows that nothing can be made of fail by themselves, whatever they are, and neither their neighbours nor a recovery, a full
// sync or an audit stumbles over them.
func TestPoisonedRowsHarmOnlyThemselves(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	storetest.Exec(t, m.url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
		values ('network', 'a', 'create', 'null', '{}', '', ''),
			('network', 'b', 'update', '7', '{}', '', ''),
			('volcano', 'c', 'create', '{}', '{}', '', ''),
			('member', 'd', 'delete', '{}', '{}', '', ''),
			('policy', 'e', 'create', '{"rules":[7]}', '{}', '', ''),
			('port', 'f', 'create', '{"security_groups":7}', '{}', '', ''),
			('l2gateway_connection', 'g', 'update', '{}', '{}', '', '')`)
	m.grow(2)
	m.drain()

	poisoned := failed(m)
	if len(poisoned) != 7 {
		t.Errorf("%d of 7 failed", len(poisoned))
	}
	for _, e := range poisoned {
		if e.LastError == "" || e.Attempt != 1 {
			t.Errorf("entry %d after %d attempts: %q", e.Seq, e.Attempt, e.LastError)
		}
	}
	for _, kind := range []string{contract.KeyRecovery, contract.KeyFullSync} {
		if r := m.finish(m.start(kind, 0)); r.State != journal.RunDone {
			t.Errorf("%s", r.Sentence())
		}
		m.drain()
	}
	for _, e := range failed(m) { // what recovery could not decide, people skip
		if _, err := m.store.Journal.SkipEntry(t.Context(), e.Seq, "ann", "poison"); err != nil {
			t.Error(err)
		}
	}
	m.equal()
}

// That the canary's own entry fails is mended as for any other, and no reason for one full sync after the other.
func TestCanaryThatFailsIsRecovered(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	canary := journal.Canary().Object
	m.odl.InjectFaults(odltest.Fault{Method: "POST", ID: canary.ID, Status: 400, Times: 5})
	r := m.start(contract.KeyFullSync, 0)
	if r := m.finish(r); r.State != journal.RunDone {
		t.Fatalf("%s", r.Sentence())
	}
	for range 6 {
		m.rested()
		m.drain()
	}
	if f := failed(m); len(f) != 1 || f[0].Object != canary {
		t.Fatalf("%v", f)
	}
	if err := m.acts.StartDueRuns(t.Context()); err != nil {
		t.Fatal(err)
	}
	if open, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync); err != nil || open.ID != 0 {
		t.Errorf("another full sync: %+v, %v", open, err)
	}

	m.finish(m.start(contract.KeyRecovery, 0))

	m.drain()
	if m.odl.Record("network", canary.ID).Object == nil || len(failed(m)) != 0 {
		t.Error("the canary is not there")
	}
}

// The journal shows whom a port of nobody is accounted to: the controller takes no port without a tenant.
func TestPortOfNobodyIsShownAsItsNetworks(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	n := m.grow(1)[0]
	made, err := m.store.Network.CreatePorts(t.Context(), portsOf(n, ""))
	if err != nil {
		t.Fatal(err)
	}
	m.drain()
	rec := m.odl.Record("port", made[0].ID.String())
	if rec.Object["tenant_id"] != "demo" || rec.Object["project_id"] != "demo" || made[0].Project != "" {
		t.Errorf("%v, ours of %q", rec.Object, made[0].Project)
	}
	m.equal()
}

// What is rolled back leaves no entry.
func TestRefusedOperationLeavesNoEntry(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	n := m.grow(1)[0]
	before := count(m)
	drafts := portsOf(n, "demo")
	drafts = append(drafts, drafts[0])
	drafts[0].MAC, drafts[1].MAC = ptr("fa:16:3e:00:00:01"), ptr("fa:16:3e:00:00:01")
	if _, err := m.store.Network.CreatePorts(t.Context(), drafts); err == nil || !strings.Contains(err.Error(), "fa:16:3e:00:00:01") {
		t.Fatal(err)
	}
	if err := m.store.Network.DeleteNetwork(t.Context(), n.ID, nil); err == nil {
		t.Fatal("a network with ports was deleted")
	}
	if after := count(m); after != before {
		t.Errorf("%d entries, then %d", before, after)
	}
}

func count(m *mirror) int {
	m.Helper()
	entries, err := m.store.Journal.JournalEntries(m.Context(), journalstore.EntryFilter{Limit: 1000})
	if err != nil {
		m.Fatal(err)
	}
	return len(entries)
}
