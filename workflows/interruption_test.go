package workflows_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/lease"
)

// messagesDuringOutage is the number of messages that a test sends to a workflow while an external service is
// unavailable. `make races` sets BERTH_TEST_ROUNDS to 1,000, so it sends 50,000 messages, five times as many
// as Temporal accepts in one run.
func messagesDuringOutage(t *testing.T) int {
	t.Helper()
	rounds, err := strconv.Atoi(os.Getenv("BERTH_TEST_ROUNDS"))
	if err != nil {
		rounds = messagesPerBurst / 50
	}
	return 50 * rounds
}

const (
	// maxSignalsOfRun is far below the limit of 10,000 signals at which Temporal refuses more.
	// maxSignalsOfRun is more than the number of messages after which a delivery is interrupted, because a
	// running attempt ends first.
	maxSignalsOfRun = 1_800
	// maxEventsOfRun is the number of events at which Temporal warns about the length of a history.
	maxEventsOfRun = 10_240
)

// signalUntilAnswer sends a signal, and repeats the signal until Temporal accepts it or refuses it
// permanently. Temporal accepts no signal for a moment while a run ends, and on a busy machine this moment is
// long.
func (s *scenario) signalUntilAnswer(name string, arg any) error {
	for {
		err := s.client.SignalWorkflow(s.t.Context(), s.id, "", name, arg)
		_, full := errors.AsType[*serviceerror.InvalidArgument](err)
		_, ended := errors.AsType[*serviceerror.NotFound](err)
		if err == nil || full || ended || s.t.Context().Err() != nil {
			return err
		}
	}
}

// messagesPerBurst is more than the number of messages after which a delivery is interrupted.
const messagesPerBurst = 600

// sendConcurrently sends signals 0 to n-1 in bursts. After each burst, sendConcurrently waits until the
// workflow has continued as new, because Temporal handles new signals before the workflow task that receives
// them: signals without a pause could delay this workflow task until the last signal has arrived.
// sendConcurrently fails the test if Temporal refuses a signal.
func (s *scenario) sendConcurrently(n int, name string, arg func(i int) any) {
	s.t.Helper()
	for from := 0; from < n; from += messagesPerBurst {
		run := s.currentRun()
		s.sendBurst(from, min(from+messagesPerBurst, n), name, arg)
		if from+messagesPerBurst <= n {
			s.waitUntil("is of another run", func(contract.Why) bool { return s.currentRun() != run })
		}
	}
}

// sendBurst sends the signals from `from` to end-1 from 8 senders. Each sender sends its signals in order.
func (s *scenario) sendBurst(from, end int, name string, arg func(i int) any) {
	s.t.Helper()
	s.isFlooded = true
	const senders = 8
	var wait sync.WaitGroup
	for sender := range senders {
		wait.Go(func() {
			for i := from + sender; i < end; i += senders {
				if err := s.signalUntilAnswer(name, arg(i)); err != nil {
					s.t.Errorf("signal %d: got error %v, want Temporal to accept it", i, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// checkRuns checks that no run of the workflow, from the given first run on, got too many signals or events.
func (s *scenario) checkRuns(run string) {
	s.t.Helper()
	runs := 0
	for ; run != ""; runs++ {
		signals, events, next := 0, 0, ""
		for i := s.client.GetWorkflowHistory(s.t.Context(), s.id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
			e, err := i.Next()
			if err != nil {
				s.t.Fatal(err)
			}
			events++
			if e.GetWorkflowExecutionSignaledEventAttributes() != nil {
				signals++
			}
			if a := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
				next = a.GetNewExecutionRunId()
			}
		}
		if signals > maxSignalsOfRun || events > maxEventsOfRun {
			s.t.Errorf("run %d of %s: got %d signals and %d events, want at most %d and %d",
				runs+1, s.id, signals, events, maxSignalsOfRun, maxEventsOfRun)
		}
		run = next
	}
	s.t.Logf("%s had %d runs", s.id, runs)
}

func TestRealServer_PortIsNeverFullWhileNovaIsAway(t *testing.T) {
	t.Parallel()
	w := &fakeRows{
		host:          "cmp-1",
		blocks:        []string{"L2", "DHCP"},
		pendingEvents: 1,
		novaFailures:  1 << 30,
	}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")
	first, n := s.currentRun(), messagesDuringOutage(t)

	s.sendConcurrently(n, contract.SignalProvisioningComplete, func(i int) any {
		return contract.Report{Entity: "L2", Host: fmt.Sprintf("host-%d", i)}
	})
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "DHCP", Host: "cmp-1"})
	why := s.waitForState("ACTIVE")
	if why.LastError == "" {
		t.Errorf("query \"why\" while Nova is unavailable: got %+v, want Nova's error", why)
	}
	w.mu.Lock()
	w.novaFailures, w.deleted = 0, true
	got := map[string]bool{}
	for _, r := range w.appliedReports {
		got[r.Host] = true
	}
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-full", first)

	if len(got) != n+1 {
		t.Errorf("reports during the outage: got reports from %d hosts, want %d", len(got), n+1)
	}
	if w.delivered != 2 || w.pendingEvents != 0 {
		t.Errorf("events for Nova: got %d delivered and %d left, want 2 and 0", w.delivered, w.pendingEvents)
	}
	s.checkRuns(first)
}

func TestRealServer_DeletedPortIsNeverFullWhileNovaIsAway(t *testing.T) {
	t.Parallel()
	w := &fakeRows{deleted: true, pendingEvents: 1, novaFailures: 1 << 30}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DELETED")
	first, n := s.currentRun(), messagesDuringOutage(t)

	s.sendConcurrently(n, contract.SignalProvisioningComplete,
		func(int) any { return contract.Report{Entity: "L2", Host: "cmp-1"} })
	w.mu.Lock()
	w.novaFailures = 0
	w.mu.Unlock()
	s.finishAndRecord("port-deleted-full", first)

	if w.delivered != 1 {
		t.Errorf("events for Nova: got %d delivered, want 1", w.delivered)
	}
	s.checkRuns(first)
}

func TestRealServer_DeliveryIsNeverFullWhileItsReceiverIsAway(t *testing.T) {
	t.Parallel()
	w := &fakeRows{receiverFailures: 1 << 30}
	s := newScenario(t, contract.AgentNotifications,
		contract.AgentNotificationsID(leaseID.String()), w.functions())
	s.waitForState("undelivered")
	first := s.currentRun()

	s.sendConcurrently(messagesDuringOutage(t), contract.SignalChanged, func(int) any { return nil })
	if why := s.waitForState("undelivered"); why.LastError == "" {
		t.Errorf("query \"why\" during the outage: got %+v, want the error of the receiver", why)
	}
	w.mu.Lock()
	w.receiverFailures = 0
	w.mu.Unlock()
	s.finishAndRecord("agentnotifications-full", first)

	if w.delivered == 0 {
		t.Error("got no delivery after the outage, want one")
	}
	s.checkRuns(first)
}

func TestRealServer_ControllerOutageFillsNoWorkflow(t *testing.T) {
	t.Parallel()
	for typ, id := range map[string]string{contract.FullSync: contract.RunID(contract.KeyFullSync), contract.JournalEntry: contract.JournalID("7")} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			w := &fakeRows{entry: "pending", controllerFailures: 1 << 30}
			s := newScenario(t, typ, id, w.functions())
			first := s.currentRun()

			s.sendConcurrently(messagesDuringOutage(t), contract.SignalChanged, func(int) any { return nil })
			func() {
				w.mu.Lock() // keeps the workflow from its end until it has the signal
				defer w.mu.Unlock()
				w.controllerFailures = 0
				s.signal(contract.SignalChanged, nil)
			}()
			s.finishAndRecord(strings.ToLower(typ)+"-full", first)
			s.checkRuns(first)
		})
	}
}

func TestRealServer_PortIsNeverFullWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2", "DHCP"}}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")
	first := s.currentRun()
	w.mu.Lock()
	w.databaseFailures = 1 << 30
	w.mu.Unlock()
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"})
	s.waitForDatabase()
	update, err := s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: s.id,
		UpdateName: contract.UpdateProvisioningComplete,
		Args: []any{
			contract.Report{Entity: "DHCP", Host: "elsewhere"},
		},
		WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err != nil {
		t.Fatal(err)
	}

	const hosts = 50
	s.sendConcurrently(messagesDuringOutage(t), contract.SignalProvisioningComplete, func(i int) any {
		return contract.Report{Entity: "L2", Host: fmt.Sprintf("host-%d", i%hosts)}
	})
	if err := update.Get(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "report again") {
		t.Errorf(
			"update while the database is unavailable: got error %v, want one that says that the agent must report again",
			err,
		)
	}
	if why := s.waitForDatabase(); why.State != "DOWN" {
		t.Errorf(
			"query \"why\" while the database is unavailable: got %+v, want the last known state DOWN",
			why,
		)
	}
	s.signal(contract.SignalProvisioningComplete, contract.Report{Entity: "DHCP", Host: "cmp-1"})
	w.mu.Lock()
	w.databaseFailures = 0
	w.mu.Unlock()
	s.waitForState("ACTIVE")
	w.mu.Lock()
	w.deleted = true
	got := map[string]bool{}
	for _, r := range w.appliedReports {
		got[r.Host] = true
	}
	w.mu.Unlock()
	s.signalDeletion()
	s.finishAndRecord("port-database-full", first)

	if want := hosts + 2; len(got) != want { // the hosts of the signals, and the hosts cmp-1 and elsewhere
		t.Errorf("reports during the outage: got reports from %d hosts, want %d", len(got), want)
	}
	s.checkRuns(first)
}

func TestRealServer_LeaseIsNeverFullWhileItsNeighbourIsAway(t *testing.T) {
	t.Parallel()
	t.Run("Nova hangs", func(t *testing.T) {
		t.Parallel()
		w := newFakeLease(time.Now, -time.Second, time.Hour)
		w.hangs = true
		s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
		before := s.waitUntil("names Nova and Neutron as \"cloud\"", waitsForCloud)
		first := s.currentRun()

		s.sendConcurrently(messagesDuringOutage(t), contract.SignalChanged, func(int) any { return nil })
		after := s.waitUntil("names Nova and Neutron as \"cloud\"", waitsForCloud)
		if !after.Waiting[0].Deadline.Equal(*before.Waiting[0].Deadline) {
			t.Errorf("end of the retries after some runs: got %s, want the end of the first run %s",
				after.Waiting[0].Deadline, before.Waiting[0].Deadline)
		}
		w.mu.Lock()
		w.hangs = false
		w.mu.Unlock()
		s.waitForState(string(lease.Active))
		w.mu.Lock()
		w.deleted = true
		w.mu.Unlock()
		s.signalDeletion()
		s.finishAndRecord("lease-full", first)
		s.checkRuns(first)
	})
	t.Run("the database is unavailable", func(t *testing.T) {
		t.Parallel()
		w := newFakeLease(time.Now, time.Hour, 2*time.Hour)
		w.databaseDown = true
		s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
		s.waitForDatabase()
		first := s.currentRun()

		s.sendConcurrently(messagesDuringOutage(t), contract.SignalChanged, func(int) any { return nil })
		w.mu.Lock()
		w.databaseDown, w.deleted = false, true
		w.mu.Unlock()
		s.finishAndRecord("lease-database-full", first)
		s.checkRuns(first)
	})
}

func waitsForCloud(why contract.Why) bool {
	return slices.ContainsFunc(why.Waiting,
		func(w contract.Waiting) bool { return w.For == "cloud" && w.Deadline != nil })
}
