package workflows_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

const portKey = "6a8ff5ae-0a4e-4f49-8f9c-0f9bb2ac1111"

func runPort(env *testsuite.TestWorkflowEnvironment) {
	env.ExecuteWorkflow(contract.Port, contract.Input{Key: portKey})
}

// after lets something happen at that moment of the workflow's life.
func after(env *testsuite.TestWorkflowEnvironment, d time.Duration, do func()) {
	env.RegisterDelayedCallback(do, d)
}

func signal(env *testsuite.TestWorkflowEnvironment, entity, host string) {
	env.SignalWorkflow(contract.SignalProvisioningComplete, contract.Report{Entity: entity, Host: host})
}

// remove deletes the row at that moment, so that the workflow comes to its end.
func remove(env *testsuite.TestWorkflowEnvironment, w *world, d time.Duration) {
	after(env, d, func() {
		w.mu.Lock()
		w.gone = true
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
	})
}

func TestPortSaysForWhomItWaitsUntilTheLastAgentReports(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := environment(w)
	var seen []string
	note := func() {
		why := ask(t, env)
		seen = append(seen, fmt.Sprintf("%s %d: %s", why.State, len(why.Waiting), why.Sentence))
	}

	after(env, time.Second, note)
	after(env, 2*time.Second, func() { signal(env, "L2", "cmp-1") })
	after(env, 3*time.Second, note)
	after(env, 4*time.Second, func() { signal(env, "DHCP", "cmp-1") })
	after(env, 5*time.Second, note)
	remove(env, w, 6*time.Second)
	runPort(env)

	want := []string{
		"DOWN 2: Port web-1 is DOWN, blocked by [DHCP L2].",
		"DOWN 1: Port web-1 is DOWN, blocked by [DHCP].",
		"ACTIVE 0: Port web-1 is ACTIVE, blocked by [].",
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	if err := env.GetWorkflowError(); err != nil || w.told != 1 {
		t.Errorf("error %v, events told to Nova %d, want 1", err, w.told)
	}
}

func TestReportsThatComeTogetherAreHandledByOneLook(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := environment(w)

	after(env, time.Second, func() {
		for range 50 {
			signal(env, "L2", "cmp-1")
			signal(env, "DHCP", "cmp-1")
		}
	})
	remove(env, w, 2*time.Second)
	runPort(env)

	if w.reports != 100 || w.looks > 10 {
		t.Errorf("%d reports reached the row in %d looks, want 100 in a few", w.reports, w.looks)
	}
	if w.told != 1 {
		t.Errorf("Nova heard %d events, want 1", w.told)
	}
}

// Unplugged and plugged in again is not plugged in and unplugged.
func TestWhatAnAgentSaysReachesTheRowInItsOrder(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}}
	env := environment(w)
	var said []contract.Report
	for i, event := range []string{"begun", "complete", "lost", "", "lost", "begun", "complete"} {
		said = append(said, contract.Report{Entity: "L2", Host: "cmp-1", Event: event, Revision: int64(i)})
	}

	after(env, time.Second, func() {
		for _, r := range said {
			env.SignalWorkflow(contract.SignalProvisioningComplete, r)
		}
	})
	remove(env, w, 2*time.Second)
	runPort(env)

	if d := cmp.Diff(said, w.heard); d != "" {
		t.Error(d)
	}
}

func TestMalformedSignalIsCountedNotFatal(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}}
	env := environment(w)

	after(env, time.Second, func() {
		env.SignalWorkflow(contract.SignalProvisioningComplete, "L2 is done")
		env.SignalWorkflow(contract.SignalProvisioningComplete, map[string]any{"entity": 7})
		env.SignalWorkflow(contract.SignalProvisioningComplete, nil)
		signal(env, "L2", "another-host")
		env.SignalWorkflow("no-such-signal", 1)
	})
	after(env, 2*time.Second, func() {
		if why := ask(t, env); why.State != "DOWN" || why.IgnoredReports != 4 {
			t.Errorf("want DOWN and 4 ignored reports, got %+v", why)
		}
	})
	remove(env, w, 3*time.Second)
	runPort(env)

	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestPortLooksWhenItsDeadlinePasses(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}, patience: time.Minute}
	env := environment(w)

	after(env, 2*time.Minute, func() {
		if why := ask(t, env); why.State != "ERROR" {
			t.Errorf("after its deadline: %+v", why)
		}
		signal(env, "L2", "cmp-1")
	})
	after(env, 3*time.Minute, func() {
		if why := ask(t, env); why.State != "ACTIVE" || w.looks != 4 {
			t.Errorf("after the late report: %+v in %d looks", why, w.looks)
		}
	})
	remove(env, w, 4*time.Minute)
	runPort(env)

	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestUpdateAnswersWhoRemains(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := environment(w)
	var verdict contract.ReportResult
	var rejected error

	after(env, time.Second, func() {
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u1", &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { t.Errorf("rejected: %v", err) },
			OnComplete: func(v any, err error) { verdict, _ = v.(contract.ReportResult) },
		}, contract.Report{Entity: "L2", Host: "cmp-1"})
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u2", &testsuite.TestUpdateCallback{
			OnAccept:   func() { t.Error("a report without an entity was accepted") },
			OnReject:   func(err error) { rejected = err },
			OnComplete: func(any, error) {},
		}, contract.Report{Host: "cmp-1"})
		env.UpdateWorkflow(contract.UpdateProvisioningComplete, "u3", &testsuite.TestUpdateCallback{
			OnAccept:   func() { t.Error("a report of an unknown event was accepted") },
			OnReject:   func(error) {},
			OnComplete: func(any, error) {},
		}, contract.Report{Entity: "L2", Event: "moon"})
	})
	remove(env, w, 2*time.Second)
	runPort(env)

	if d := cmp.Diff(contract.ReportResult{Status: "DOWN", Remaining: []string{"DHCP"}}, verdict); d != "" {
		t.Error(d)
	}
	if rejected == nil {
		t.Error("a report without an entity was not rejected")
	}
}

func TestNovaAwayKeepsNoReportWaiting(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}, novaDown: 6}
	env := environment(w)

	after(env, time.Second, func() { signal(env, "L2", "cmp-1") })
	after(env, 3*time.Second, func() { signal(env, "L2", "elsewhere") })
	after(env, 4*time.Second, func() {
		why := ask(t, env)
		if why.State != "ACTIVE" || why.IgnoredReports != 1 || why.LastError == "" {
			t.Errorf("want ACTIVE with the trouble at Nova and the late report counted, got %+v", why)
		}
	})
	remove(env, w, 5*time.Second)
	runPort(env)

	if err := env.GetWorkflowError(); err != nil || w.told != 1 {
		t.Errorf("error %v, events told to Nova %d, want 1", err, w.told)
	}
}

// A port that is deleted while a slow Nova is told of it leaves one more event, which Nova hears too.
func TestNovaHearsOfAPortThatIsDeletedWhileItIsTold(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"L2"}}
	env := environment(w)
	w.meanwhile = func() {
		w.mu.Lock()
		w.gone = true
		w.nova++
		before := w.looks
		w.mu.Unlock()
		env.SignalWorkflow(contract.SignalChanged, nil)
		for looks := before; looks == before; time.Sleep(time.Millisecond) {
			w.mu.Lock()
			looks = w.looks
			w.mu.Unlock()
		}
	}

	after(env, time.Second, func() { signal(env, "L2", "cmp-1") })
	runPort(env)

	if err := env.GetWorkflowError(); err != nil || w.told != 2 || w.nova != 0 {
		t.Errorf("error %v, Nova was told of %d events and %d are left", err, w.told, w.nova)
	}
}

func TestPortContinuesAsNewAfterItsShareOfMessages(t *testing.T) {
	t.Parallel()
	w := &world{host: "cmp-1", blocks: []string{"DHCP", "L2"}}
	env := environment(w)

	after(env, time.Second, func() {
		for i := range 250 {
			signal(env, "L2", fmt.Sprintf("host-%d", i))
		}
	})
	runPort(env)

	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("want continue-as-new, got %v", err)
	}
	if w.reports != 250 {
		t.Errorf("%d of 250 reports reached the row", w.reports)
	}
}
