package activities_test

import (
	"slices"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/storetest"
)

// dueRuns starts the runs that are due and finishes them. It returns the kind and the reason of each run.
func (m *mirrorFixture) dueRuns() (started []string) {
	m.Helper()
	if err := m.acts.StartDueRuns(m.Context()); err != nil {
		m.Fatal(err)
	}
	for _, kind := range journal.RunKinds {
		r, err := m.store.Mirror.OpenRun(m.Context(), kind)
		if err != nil {
			m.Fatal(err)
		}
		if r.ID != 0 {
			m.finishRun(r)
			started = append(started, kind+": "+r.Reason)
		}
	}
	return started
}

// lastAudit returns the result of the last audit.
func (m *mirrorFixture) lastAudit() string {
	m.Helper()
	r, err := m.store.Mirror.LastDone(m.Context(), contract.KeyAudit)
	if err != nil {
		m.Fatal(err)
	}
	return r.Note
}

// plantDifferences deletes a network at the controller, renames another one, and adds one that has no row.
func (m *mirrorFixture) plantDifferences() {
	m.Helper()
	var networks []map[string]any
	for _, r := range m.odl.Records() {
		if r.Type == "network" && r.Object != nil && r.ID != journal.Canary().Object.ID {
			networks = append(networks, r.Object)
		}
	}
	missing, different, extra := networks[0]["id"].(string), networks[1], "ffffffff-0000-4000-8000-000000000001"
	different["name"] = "changed by hand"
	for id, o := range map[string]map[string]any{missing: nil, different["id"].(string): different, extra: {"id": extra, "name": "of a newer backup"}} {
		if err := m.odl.Alter("network", id, o); err != nil {
			m.Fatal(err)
		}
	}
}

// A scheduled audit finds what was changed at the controller, a full sync repairs what is missing or
// different, and another audit shows what is left: the object that only the controller has. berth never
// deletes such an object automatically, because the database may have been restored from a backup that does
// not contain the object's row.
func TestStartDueRuns_AuditsAndRepairsController(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.createNetworks(3)
	m.drainJournal()
	m.finishRun(m.startRun(contract.KeyFullSync, 0)) // creates the check network, see journal.Canary
	m.acts.AuditInterval, m.acts.AuditRepair = time.Hour, true
	expect := func(when, audit string, runs ...string) {
		t.Helper()
		if got := m.dueRuns(); !slices.Equal(got, runs) {
			t.Errorf("runs that are due %s: got %q, want %q", when, got, runs)
		}
		if got := m.lastAudit(); got != audit {
			t.Errorf("last audit %s: got %q, want %q", when, got, audit)
		}
	}
	const due = "audit: no audit was started in the last 1h0m0s"

	expect("at first", "0 missing, 0 different, 0 extra", due)
	expect("after an audit without differences", "0 missing, 0 different, 0 extra")
	m.plantDifferences()
	expect("before the interval has passed", "0 missing, 0 different, 0 extra")
	storetest.Exec(t, m.url,
		`update mirror_run set created_at = created_at - interval '2 hours', finished_at = finished_at - interval '2 hours'`)
	expect("two hours later", "1 missing, 1 different, 1 extra", due)
	m.acts.AuditRepair = false
	expect("after an audit with differences, without repair", "1 missing, 1 different, 1 extra")
	m.acts.AuditRepair = true
	expect("after an audit with differences", "1 missing, 1 different, 1 extra",
		"full-sync: audit 3 has found 1 missing, 1 different, 1 extra")
	expect("after the full sync", "0 missing, 0 different, 1 extra",
		"audit: full-sync 4 has ended after audit 3")
	expect("after the repair", "0 missing, 0 different, 1 extra")
}
