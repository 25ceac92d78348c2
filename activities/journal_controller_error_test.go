package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl"
	"berth/internal/odl/odltest"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

const always = 1_000_000 // number of requests to which a fault applies

// The controller answers 5xx for one object, or breaks the connection, but accepts all other objects. Only
// the entry of this object fails, after the maximum number of failures. The failed entry shows the
// controller's error text, the entries that wait for the failed entry name it, and a recovery sends the
// failed entry again.
func TestControllerError_ForOneObjectFailsItsEntry(t *testing.T) {
	t.Parallel()
	const words = "datastore: no quorum for shard 7"
	for name, tc := range map[string]struct {
		fault odltest.Fault
		error []string
	}{
		"500":   {odltest.Fault{Status: 500, Body: words}, []string{"500", words}},
		"503":   {odltest.Fault{Status: 503, Body: words}, []string{"503", words}},
		"reset": {odltest.Fault{Break: odltest.BreakReset}, []string{"reset: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testErrorForOneObject(t, tc.fault, tc.error...)
		})
	}
}

func testErrorForOneObject(t *testing.T, fault odltest.Fault, words ...string) {
	const limit = 3
	m := newMirrorFixture(t)
	client, err := newClient(m.controllerURL)
	if err != nil {
		t.Fatal(err)
	}
	m.acts = newActivities(activities.Options{Store: m.store, ODL: client, MaxEntryFailures: limit})
	broken := m.createNetworks(1)[0].ID.String()
	fault.ID, fault.Times = broken, always
	m.odl.InjectFaults(fault)
	for round := range limit + 1 {
		m.endRetryDelays()
		// On a busy machine, the attempt before may seem to be later than what the controller has accepted
		// after it: the time of the attempt is from the database, that of the acceptance is not.
		storetest.Exec(t, m.url, `update journal_entry set looked_at = looked_at - interval '1 hour'`)
		m.drainJournal()
		if got := m.journalEntry(1); got.Failures != round || got.State == journal.Failed && round < limit {
			t.Fatalf(
				"after attempt %d: got entry in state %s with %d failures, want %d failures and not failed before %d",
				round+1, got.State, got.Failures, round, limit,
			)
		}
		m.createNetworks(1)
		m.drainJournal()
	}

	failed := m.failedEntries()
	if len(failed) != 1 || failed[0].Object.ID != broken {
		t.Fatalf("failed entries: got %+v, want only the create of network %s", failed, broken)
	}
	for _, w := range words {
		if !strings.Contains(failed[0].LastError, w) {
			t.Errorf("last error of the failed entry: got %q, want %q in it", failed[0].LastError, w)
		}
	}
	p, err := m.acts.TryEntry(t.Context(), "2")
	if err != nil || !p.Blocked ||
		!strings.Contains(p.Sentence, "entry 1 (create network "+broken+"), which is failed") {
		t.Errorf(
			"progress of the subnet of network %s: got %q, error %v; want that it waits for failed entry 1",
			broken, p.Sentence, err,
		)
	}
	if wait, why := m.acts.ODL.BreakerWait(); wait != 0 {
		t.Errorf("after errors for one object: got an open circuit breaker (%s), want it closed", why)
	}

	m.finishRun(m.startRun(contract.KeyRecovery, 0))
	if e := m.journalEntry(1); e.State != journal.Failed {
		t.Errorf("entry 1 after a recovery, while the read of its object fails: got %s, want failed", e.State)
	}
	m.odl.ClearFaults()
	m.finishRun(m.startRun(contract.KeyRecovery, 0))
	m.drainJournal()
	m.checkInSync()
}

// unlimitedController is a controller without a circuit breaker, so that a test can make many attempts during
// an outage.
type unlimitedController struct {
	*odl.Client
	url string
}

// Send sends a request with a new client.
func (c unlimitedController) Send(ctx context.Context, r odl.Request) (odl.Response, error) {
	client, err := newClient(c.url)
	if err != nil {
		return odl.Response{}, err
	}
	return client.Send(ctx, r)
}

func newFixtureWithoutBreaker(t *testing.T) *mirrorFixture {
	m := newMirrorFixture(t)
	client, err := newClient(m.controllerURL)
	if err != nil {
		t.Fatal(err)
	}
	m.acts = newActivities(
		activities.Options{Store: m.store, ODL: unlimitedController{client, m.controllerURL}},
	)
	return m
}

// While the controller accepts no write at all, no entry fails, whatever the controller answers and however
// often an entry is tried.
func TestControllerError_OutageNeverCountsAgainstAnEntry(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]odltest.Fault{
		"all requests fail": {{Status: 500, Times: always}},
		"overload":          {{Status: 503, Times: always}},
		"reads work":        {{Method: "POST", Status: 500, Times: always}, {Method: "PUT", Status: 500, Times: always}},
		"writes are executed but answered 500": {{
			Method:  "POST",
			Applied: true,
			Status:  500,
			Times:   always,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixtureWithoutBreaker(t)
			m.createNetworks(1)
			m.drainJournal() // accepted writes before the outage are no evidence
			m.odl.InjectFaults(faults...)
			m.createNetworks(4)
			for range 3 * journal.DefaultMaxFailures {
				m.endRetryDelays()
				m.drainJournal()
			}
			for _, e := range m.entries() {
				if e.Failures != 0 {
					t.Errorf(
						"entry %d after %d attempts during an outage: got %d failures (%s), want 0",
						e.Seq, e.Attempt, e.Failures, e.LastError,
					)
				}
			}
			m.odl.ClearFaults()
			for range 2 {
				m.endRetryDelays()
				m.drainJournal()
			}
			m.checkInSync()
		})
	}
}

// If the controller accepts one write between any two outages, each outage counts as one failure of at most
// one entry.
func TestControllerError_RepeatedOutagesCountAtMostOnceEach(t *testing.T) {
	t.Parallel()
	const outages, waiting = 8, 20
	m := newFixtureWithoutBreaker(t)
	for i := range waiting {
		m.recordChanges(newChange(journal.Create, "network", fmt.Sprint("waiting-", i), nil))
	}
	for i := range outages {
		m.odl.ClearFaults()
		m.recordChanges(newChange(journal.Create, "network", fmt.Sprint("accepted-", i), nil))
		if p, err := m.acts.TryEntry(t.Context(), fmt.Sprint(waiting+1+i)); err != nil ||
			p.State != string(journal.Completed) {
			t.Fatalf("send an entry between two outages: got %+v, error %v; want it completed", p, err)
		}
		m.odl.InjectFaults(odltest.Fault{Status: 500, Times: always})
		m.endRetryDelays()
		m.drainJournal()
	}
	failures := 0
	for _, e := range m.entries() {
		failures += e.Failures
	}
	if failures > outages {
		t.Errorf("%d entries during %d outages: got %d counted failures, want at most one per outage",
			waiting, outages, failures)
	}
}

// If the controller answers 500 for the entry of one object, the entries of other objects are
// delayed for at most about one second, the interval between two probes of the open circuit breaker.
func TestControllerError_ForOneObjectDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	m.recordChanges(newChange(journal.Create, "network", "broken", nil))
	m.odl.InjectFaults(odltest.Fault{ID: "broken", Status: 500, Times: always})
	for range 20 { // no other entry is open: these failures open the circuit breaker
		m.endRetryDelays()
		m.drainJournal()
	}
	if !m.acts.ODL.(*odl.Client).BreakerOpen() {
		t.Fatal("after 20 failed attempts in a row the circuit breaker is closed, want it open")
	}
	m.recordChanges(newChange(journal.Create, "network", "good", nil))
	begin := time.Now()
	for m.journalEntry(2).State != journal.Completed {
		if time.Since(begin) > 10*time.Minute {
			t.Fatal("another entry was not sent within ten minutes, want about a second on a fast machine")
		}
		if wait, _ := m.acts.ODL.BreakerWait(); wait > 0 {
			time.Sleep(min(wait, 50*time.Millisecond))
		}
		m.endRetryDelays()
		if _, err := m.acts.TryEntry(t.Context(), "2"); err != nil {
			t.Fatal(err)
		}
	}
	if wait, why := m.acts.ODL.BreakerWait(); wait != 0 {
		t.Errorf("after an accepted write: got an open circuit breaker (%s), want it closed", why)
	}
	if e := m.journalEntry(1); e.Failures != 0 {
		t.Errorf("broken entry before another write was accepted: got %d failures, want 0", e.Failures)
	}
}

// entries lists all journal entries.
func (m *mirrorFixture) entries() []journal.Entry {
	m.Helper()
	entries, err := m.store.Journal.JournalEntries(m.Context(), journalstore.EntryFilter{Limit: 1000})
	if err != nil {
		m.Fatal(err)
	}
	return entries
}
