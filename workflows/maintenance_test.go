package workflows_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
)

func TestMaintenance_ContinuesWhereLastRoundEnded(t *testing.T) {
	t.Parallel()
	w := &fakeRows{}
	env := newEnvironment(w)
	last := env.Now().Add(-7 * time.Minute).UTC()
	env.SetLastCompletionResult(contract.SweepResult{Until: last})
	start := env.Now()

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	var swept contract.SweepResult
	if err := env.GetWorkflowResult(&swept); err != nil {
		t.Fatal(err)
	}
	if len(w.sweptSince) != 1 || !w.sweptSince[0].Before(last) || last.Sub(w.sweptSince[0]) > time.Minute {
		t.Errorf(
			"search for ended workflows: got a start at %v, want one time shortly before the end of the last round, %v",
			w.sweptSince,
			last,
		)
	}
	if swept.Until.Before(start) || swept.RestartedWorkflows != 1 {
		t.Errorf(
			"maintenance round: got the result %+v; want 1 restarted workflow, and Until not before the start of the round",
			swept,
		)
	}
}

func TestMaintenance_FirstRoundSearchesOneDay(t *testing.T) {
	t.Parallel()
	w := &fakeRows{}
	env := newEnvironment(w)

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	if err := env.GetWorkflowError(); err != nil || len(w.sweptSince) != 1 ||
		env.Now().Sub(w.sweptSince[0]) < 24*time.Hour {
		t.Errorf(
			"first maintenance round: got searches that start at %v, error %v; want one search that starts at least 24 hours ago",
			w.sweptSince,
			err,
		)
	}
}

func TestMaintenance_AnswersTheQueryWhy(t *testing.T) {
	t.Parallel()
	env := newEnvironment(&fakeRows{})

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	want := contract.Why{
		Object:   "maintenance/sweep",
		State:    "running",
		Sentence: "The sweep checks the hosts of leases.",
		Waiting:  []contract.Waiting{},
	}
	if d := cmp.Diff(want, queryWhy(t, env)); d != "" {
		t.Errorf("query why of a maintenance workflow in its last step (-want +got):\n%s", d)
	}
}
