package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"berth/internal/contract"
	"berth/internal/lease"
)

func namesDatabase(why contract.Why) bool {
	return slices.ContainsFunc(why.Waiting, func(w contract.Waiting) bool { return w.For == "database" }) &&
		strings.Contains(why.LastError, "connection refused")
}

// waitForDatabase waits until the query "why" names the database.
func (s *scenario) waitForDatabase() contract.Why {
	s.t.Helper()
	return s.waitUntil("names the database", namesDatabase)
}

// eventCount returns the number of events in the history of the current run.
func (s *scenario) eventCount() (n int) {
	s.t.Helper()
	for i := s.client.GetWorkflowHistory(s.t.Context(), s.id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); n++ {
		if _, err := i.Next(); err != nil {
			s.t.Fatal(err)
		}
	}
	return n
}

// expectShortHistory waits until the workflow has tried the database several times more, and checks that the
// attempts add no event to the history.
func (s *scenario) expectShortHistory(attempts func() int) {
	s.t.Helper()
	before, events := attempts(), s.eventCount()
	s.waitUntil("is given after 3 more attempts", func(contract.Why) bool { return attempts() >= before+3 })
	if n := s.eventCount(); n != events || n > 60 {
		s.t.Errorf(
			"history of %s while the database is unavailable: got %d events, and %d after more attempts; want no more events, and at most 60",
			s.id, events, n,
		)
	}
	s.t.Logf("%s: %d events after %d attempts", s.id, events, attempts())
}

func TestRealServer_PortWaitsForDatabaseWithShortHistory(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")
	w.mu.Lock()
	w.databaseFailures = 1 << 30
	w.mu.Unlock()

	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	if why := s.waitForDatabase(); why.State != "DOWN" {
		t.Errorf(
			"query \"why\" while the database is unavailable: got %+v, want the last known state DOWN",
			why,
		)
	}
	s.expectShortHistory(func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.reads })
	w.mu.Lock()
	w.databaseFailures = 0
	w.mu.Unlock()

	if why := s.waitForState("ACTIVE"); namesDatabase(why) {
		t.Errorf("query \"why\" after the outage: got %+v, want no database", why)
	}
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-database", "")
	if w.reportCount != 1 {
		t.Errorf("applied reports: got %d, want 1", w.reportCount)
	}
}

func TestRealServer_LeaseWaitsForDatabaseWithShortHistory(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, time.Hour, 2*time.Hour)
	w.databaseDown = true
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())

	s.waitForDatabase()
	s.expectShortHistory(func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.reads })
	w.mu.Lock()
	w.databaseDown = false
	w.mu.Unlock()

	if why := s.waitForState(string(lease.Pending)); namesDatabase(why) {
		t.Errorf("query \"why\" after the outage: got %+v, want no database", why)
	}
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("lease-database", "")
}
