package main

import (
	"os/exec"
	"strings"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
)

// TestDoctor_CommandMakesTheVersionOfTheWorkersCurrent runs the command that doctor prints while versioned
// workers get no tasks.
func TestDoctor_CommandMakesTheVersionOfTheWorkersCurrent(t *testing.T) {
	t.Parallel()
	n := temporaltest.New(t)
	for _, queue := range contract.TaskQueues {
		w := worker.New(n.Client, queue, worker.Options{DeploymentOptions: worker.DeploymentOptions{
			UseVersioning:             true,
			Version:                   worker.WorkerDeploymentVersion{DeploymentName: "berth", BuildID: "0.2.0"},
			DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		}})
		w.RegisterWorkflowWithOptions(portWorkflow, workflow.RegisterOptions{Name: contract.Port})
		w.RegisterActivity(func() error { return nil })
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	_, url := newAPIStub(t)
	h := harness{namespace: n, environ: []string{
		"BERTH_DATA=" + t.TempDir(),
		"BERTH_URL=" + url,
		"TEMPORAL_ADDRESS=" + n.Address,
		"TEMPORAL_NAMESPACE=" + n.Name,
	}}
	h.awaitPollers(t)
	check := func() string {
		_, output := h.run(t, "doctor")
		return lineOf(output, "worker versions")
	}

	line := check()
	if !strings.HasPrefix(line, "FAIL") || !strings.Contains(line, "the workers that poll are berth:0.2.0") {
		t.Fatalf("doctor without a current version: got the line\n%s\nwant FAIL with berth:0.2.0", line)
	}
	program, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(line, "\n")
	args := append(strings.Fields(command)[1:], "--address", n.Address, "--yes")
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("run the command of doctor: temporal %s: %v\n%s", strings.Join(args, " "), err, out)
	}

	if line := check(); !strings.HasPrefix(line, "ok") || !strings.Contains(line, "tasks go to berth:0.2.0") {
		t.Errorf("doctor after its command: got the line\n%s\nwant ok with berth:0.2.0", line)
	}
}
