package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

const portID = "6a8ff5ae-0a4e-4f49-8f9c-0f9bb2ac1111"

func runPort(env *testsuite.TestWorkflowEnvironment) {
	env.ExecuteWorkflow(contract.Port, contract.Input{Key: portID})
}

// schedule calls the function `do` at the given time after the workflow's start.
func schedule(env *testsuite.TestWorkflowEnvironment, d time.Duration, do func()) {
	env.RegisterDelayedCallback(do, d)
}

func reportSignal(env *testsuite.TestWorkflowEnvironment, entity, host string) {
	env.SignalWorkflow(contract.SignalProvisioningComplete, contract.Report{Entity: entity, Host: host})
}

// deletePortAfter deletes the port's row at the given time, so that the workflow ends.
func deletePortAfter(env *testsuite.TestWorkflowEnvironment, w *fakeRows, d time.Duration) {
	schedule(env, d, func() {
		w.mu.Lock()
		w.deleted = true
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
	})
}

func TestPort_WhyNamesMissingAgents(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := newEnvironment(w)
	var seen []string
	record := func() {
		why := queryWhy(t, env)
		seen = append(seen, fmt.Sprintf("%s %d: %s", why.State, len(why.Waiting), why.Sentence))
	}

	schedule(env, time.Second, record)
	schedule(env, 2*time.Second, func() { reportSignal(env, "L2", "cmp-1") })
	schedule(env, 3*time.Second, record)
	schedule(env, 4*time.Second, func() { reportSignal(env, "DHCP", "cmp-1") })
	schedule(env, 5*time.Second, record)
	deletePortAfter(env, w, 6*time.Second)
	runPort(env)

	want := []string{
		"DOWN 2: Port web-1 is DOWN, blocked by [DHCP L2].",
		"DOWN 1: Port web-1 is DOWN, blocked by [DHCP].",
		"ACTIVE 0: Port web-1 is ACTIVE, blocked by [].",
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	if err := env.GetWorkflowError(); err != nil || w.delivered != 1 {
		t.Errorf(
			"end of the workflow: error %v, %d events delivered to Nova; want no error and 1 event",
			err,
			w.delivered,
		)
	}
}

func TestPort_ConcurrentReportsAreAppliedTogether(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := newEnvironment(w)

	schedule(env, time.Second, func() {
		for range 50 {
			reportSignal(env, "L2", "cmp-1")
			reportSignal(env, "DHCP", "cmp-1")
		}
	})
	deletePortAfter(env, w, 2*time.Second)
	runPort(env)

	if w.reportCount != 100 || w.reads > 10 {
		t.Errorf(
			"100 reports that arrive together: %d were applied in %d activities, want 100 in at most 10",
			w.reportCount,
			w.reads,
		)
	}
	if w.delivered != 1 {
		t.Errorf("end of the workflow: %d events delivered to Nova, want 1", w.delivered)
	}
}

// The order of reports matters: "complete" and then "lost" has another result than "lost" and then
// "complete".
func TestPort_ReportsAreAppliedInOrder(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	env := newEnvironment(w)
	var sent []contract.Report
	for i, event := range []string{"begun", "complete", "lost", "", "lost", "begun", "complete"} {
		sent = append(sent, contract.Report{
			Entity:   "L2",
			Host:     "cmp-1",
			Event:    event,
			Revision: int64(i),
		})
	}

	schedule(env, time.Second, func() {
		for _, r := range sent {
			env.SignalWorkflow(contract.SignalProvisioningComplete, r)
		}
	})
	deletePortAfter(env, w, 2*time.Second)
	runPort(env)

	if d := cmp.Diff(sent, w.appliedReports); d != "" {
		t.Error(d)
	}
}

// Temporal accepts an activity's input of at most 2 MB, so one activity gets only some of many long reports.
func TestPort_ManyLongReportsAreAppliedInParts(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	env := newEnvironment(w)
	var sent []contract.Report
	for i := range 1000 {
		sent = append(sent, contract.Report{
			Entity:    "L2",
			Host:      strings.Repeat("<", 250),
			Owner:     strings.Repeat("\x01", 250),
			Signature: strings.Repeat("s", 128),
			Revision:  int64(i),
		})
	}
	schedule(env, time.Second, func() {
		for _, r := range sent {
			env.SignalWorkflow(contract.SignalProvisioningComplete, r)
		}
	})
	deletePortAfter(env, w, 2*time.Second)
	runPort(env)

	if d := cmp.Diff(sent, w.appliedReports); d != "" {
		t.Errorf("applied reports (-want +got):\n%s", d)
	}
	largest := 0
	for _, reports := range w.reportLists {
		text, err := json.Marshal(reports)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(text))
	}
	if largest > 2_000_000 || largest < 500_000 {
		t.Errorf(
			"the largest list of reports that one activity got: %d bytes, want more than 500,000 and at most 2,000,000",
			largest,
		)
	}
}

func TestPort_MalformedSignalIsCountedAsIgnored(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	env := newEnvironment(w)

	schedule(env, time.Second, func() {
		env.SignalWorkflow(contract.SignalProvisioningComplete, "L2 is done")
		env.SignalWorkflow(contract.SignalProvisioningComplete, map[string]any{"entity": 7})
		env.SignalWorkflow(contract.SignalProvisioningComplete, nil)
		reportSignal(env, "L2", "another-host")
		env.SignalWorkflow("no-such-signal", 1)
	})
	schedule(env, 2*time.Second, func() {
		if why := queryWhy(t, env); why.State != "DOWN" || why.IgnoredReports != 4 {
			t.Errorf(
				"query \"why\" after 4 reports that do not fit the port: want DOWN and 4 ignored reports, got %+v",
				why,
			)
		}
	})
	deletePortAfter(env, w, 3*time.Second)
	runPort(env)

	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestPort_ReadsRowAtDeadline(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}, errorAfter: time.Minute}
	env := newEnvironment(w)

	schedule(env, 2*time.Minute, func() {
		if why := queryWhy(t, env); why.State != "ERROR" {
			t.Errorf("query \"why\" after the deadline: got %+v, want the state ERROR", why)
		}
		reportSignal(env, "L2", "cmp-1")
	})
	schedule(env, 3*time.Minute, func() {
		if why := queryWhy(t, env); why.State != "ACTIVE" || w.reads != 4 {
			t.Errorf(
				"query \"why\" after the late report: got %+v after %d reads, want the state ACTIVE after 4 reads",
				why,
				w.reads,
			)
		}
	})
	deletePortAfter(env, w, 4*time.Minute)
	runPort(env)

	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestPort_UpdateReturnsRemainingEntities(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := newEnvironment(w)
	var result, stale contract.ReportResult
	var rejected error

	schedule(env, time.Second, func() {
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u1", &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { t.Errorf("send an update with a valid report: got the rejection %v, want none", err) },
			OnComplete: func(v any, err error) { result, _ = v.(contract.ReportResult) },
		}, contract.Report{Entity: "L2", Host: "cmp-1"})
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u2", &testsuite.TestUpdateCallback{
			OnAccept:   func() { t.Error("the workflow accepted a report without an entity, want it rejected") },
			OnReject:   func(err error) { rejected = err },
			OnComplete: func(any, error) {},
		}, contract.Report{Host: "cmp-1"})
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u3", &testsuite.TestUpdateCallback{
			OnAccept:   func() { t.Error("the workflow accepted a report of an unknown event, want it rejected") },
			OnReject:   func(error) {},
			OnComplete: func(any, error) {},
		}, contract.Report{Entity: "L2", Event: "unknown"})
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u4", &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { t.Errorf("report of an earlier host: got the rejection %v, want none", err) },
			OnComplete: func(v any, err error) { stale, _ = v.(contract.ReportResult) },
		}, contract.Report{Entity: "L2", Host: earlierHost})
	})
	deletePortAfter(env, w, 2*time.Second)
	runPort(env)

	if d := cmp.Diff(contract.ReportResult{Status: "DOWN", Remaining: []string{"DHCP"}}, result); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(contract.ReportResult{Status: "DOWN", Remaining: []string{"DHCP"}, Stale: true}, stale); d != "" {
		t.Error(d)
	}
	if rejected == nil {
		t.Error("the workflow did not reject a report without an entity, want it rejected")
	}
}

func TestPort_NovaOutageDelaysNoReport(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}, novaFailures: 6}
	env := newEnvironment(w)

	schedule(env, time.Second, func() { reportSignal(env, "L2", "cmp-1") })
	schedule(env, 3*time.Second, func() { reportSignal(env, "L2", "elsewhere") })
	schedule(env, 4*time.Second, func() {
		why := queryWhy(t, env)
		if why.State != "ACTIVE" || why.IgnoredReports != 1 || why.LastError == "" {
			t.Errorf(
				"query \"why\" while Nova is unavailable: want ACTIVE, Nova's error and one ignored report; got %+v",
				why,
			)
		}
	})
	deletePortAfter(env, w, 5*time.Second)
	runPort(env)

	if err := env.GetWorkflowError(); err != nil || w.delivered != 1 {
		t.Errorf(
			"end of the workflow: error %v, %d events delivered to Nova; want no error and 1 event",
			err,
			w.delivered,
		)
	}
}

// While NotifyNova delivers the events of a port, the deletion of the port records one more event. The
// workflow must also deliver the event that the deletion of the port records.
func TestPort_DeletionDuringNovaDeliveryIsDelivered(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"L2"}}
	env := newEnvironment(w)
	w.duringDelivery = func() {
		w.mu.Lock()
		w.deleted = true
		w.pendingEvents++
		before := w.reads
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
		for reads := before; reads == before; time.Sleep(time.Millisecond) {
			w.mu.Lock()
			reads = w.reads
			w.mu.Unlock()
		}
	}

	schedule(env, time.Second, func() { reportSignal(env, "L2", "cmp-1") })
	runPort(env)

	if err := env.GetWorkflowError(); err != nil || w.delivered != 2 || w.pendingEvents != 0 {
		t.Errorf(
			"end of the workflow: error %v, %d events delivered to Nova and %d left; want no error, 2 and 0",
			err, w.delivered, w.pendingEvents,
		)
	}
}

func TestPort_ContinuesAsNewAfterManyMessages(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := newEnvironment(w)

	schedule(env, time.Second, func() {
		for i := range 250 {
			reportSignal(env, "L2", fmt.Sprintf("host-%d", i))
		}
	})
	runPort(env)

	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("end of the run after 250 reports: want continue-as-new, got %v", err)
	}
	if w.reportCount != 250 {
		t.Errorf("reports of the run: %d of 250 were applied, want all", w.reportCount)
	}
}
