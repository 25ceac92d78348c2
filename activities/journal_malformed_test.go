package activities_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// A malformed row of the journal fails only its own entry. It does not affect other entries, recoveries, full
// syncs and audits.
func TestMalformedEntry_FailsOnlyItself(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	storetest.Exec(t, m.url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
		values ('network', 'a', 'create', 'null', '{}', '', ''),
			('network', 'b', 'update', '7', '{}', '', ''),
			('volcano', 'c', 'create', '{}', '{}', '', ''),
			('member', 'd', 'delete', '{}', '{}', '', ''),
			('policy', 'e', 'create', '{"rules":[7]}', '{}', '', ''),
			('port', 'f', 'create', '{"security_groups":7}', '{}', '', ''),
			('l2gateway_connection', 'g', 'update', '{}', '{}', '', '')`)
	m.createNetworks(2)
	m.drainJournal()

	malformed := m.failedEntries()
	if len(malformed) != 7 {
		t.Errorf("%d of 7 malformed entries failed, want all", len(malformed))
	}
	for _, e := range malformed {
		if e.LastError == "" || e.Attempt != 1 {
			t.Errorf(
				"malformed entry %d: got %d attempts and the error %q, want 1 attempt and an error",
				e.Seq, e.Attempt, e.LastError,
			)
		}
	}
	for _, kind := range []string{contract.KeyRecovery, contract.KeyFullSync} {
		if r := m.finishRun(m.startRun(kind, 0)); r.State != journal.RunDone {
			t.Errorf("state of the run: got %q, want it to end successfully", r.Sentence())
		}
		m.drainJournal()
	}
	for _, e := range m.failedEntries() { // an administrator skips the entries that recovery could not decide
		if _, err := m.store.Journal.SkipEntry(t.Context(), e.Seq, "ann", "malformed"); err != nil {
			t.Error(err)
		}
	}
	m.checkInSync()
}

// If the journal entry that creates the check network (see journal.Canary) fails, no further full sync is
// started. A recovery retries this entry like any other entry.
func TestCanary_FailedEntryIsRecovered(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	canary := journal.Canary().Object
	m.odl.InjectFaults(odltest.Fault{
		Method: "POST",
		ID:     canary.ID,
		Status: 400,
		Times:  5,
	})
	r := m.startRun(contract.KeyFullSync, 0)
	if r := m.finishRun(r); r.State != journal.RunDone {
		t.Fatalf("state of the run: got %q, want it to end successfully", r.Sentence())
	}
	for range 6 {
		m.endRetryDelays()
		m.drainJournal()
	}
	if f := m.failedEntries(); len(f) != 1 || f[0].Object != canary {
		t.Fatalf("failed entries: got %v, want only the create of the check network", f)
	}
	if err := m.acts.StartDueRuns(t.Context()); err != nil {
		t.Fatal(err)
	}
	if open, err := m.store.Mirror.OpenRun(t.Context(), contract.KeyFullSync); err != nil || open.ID != 0 {
		t.Errorf("open full sync %+v, error %v; want none", open, err)
	}

	m.finishRun(m.startRun(contract.KeyRecovery, 0))

	m.drainJournal()
	if m.odl.Record("network", canary.ID).Object == nil || len(m.failedEntries()) != 0 {
		t.Error("the check network is missing or an entry is still failed, want neither")
	}
}

// The controller rejects a port without a tenant, so the journal sends the network's project.
func TestPortWithoutProject_IsSentWithProjectOfNetwork(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	project := uuid.NewString()
	n, err := m.store.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Name: ptr("blue"), Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := m.store.Network.CreatePorts(t.Context(), onePort(n[0], ""))
	if err != nil {
		t.Fatal(err)
	}
	m.drainJournal()
	rec := m.odl.Record("port", made[0].ID.String())
	if rec.Object["tenant_id"] != project || rec.Object["project_id"] != project || made[0].Project != "" {
		t.Errorf(
			"port at the controller: got %v, want the project %s of the network, because the port has none",
			rec.Object,
			project,
		)
	}
	m.checkInSync()
}

func TestJournal_RolledBackOperationLeavesNoEntry(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	n := m.createNetworks(1)[0]
	before := m.countEntries()
	drafts := onePort(n, "demo")
	drafts = append(drafts, drafts[0])
	drafts[0].MAC, drafts[1].MAC = ptr("fa:16:3e:00:00:01"), ptr("fa:16:3e:00:00:01")
	if _, err := m.store.Network.CreatePorts(t.Context(), drafts); err == nil ||
		!strings.Contains(err.Error(), "fa:16:3e:00:00:01") {
		t.Fatal(err)
	}
	if err := m.store.Network.DeleteNetwork(t.Context(), n.ID, nil); err == nil {
		t.Fatal("delete a network with ports: got no error, want a refusal")
	}
	if after := m.countEntries(); after != before {
		t.Errorf(
			"the journal has %d entries before the refused operations and %d after them, want the same number",
			before,
			after,
		)
	}
}

func (m *mirrorFixture) countEntries() int {
	m.Helper()
	entries, err := m.store.Journal.JournalEntries(m.Context(), journalstore.EntryFilter{Limit: 1000})
	if err != nil {
		m.Fatal(err)
	}
	return len(entries)
}
