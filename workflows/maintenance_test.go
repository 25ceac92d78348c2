package workflows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/activities"
	"berth/internal/contract"
	"berth/workflows"
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

// More workflows can have ended than one round restarts. The next round then continues exactly where the last
// one has stopped; with an overlap, it could find the same workflows again and again.
func TestMaintenance_ContinuesWithTheWorkflowsThatTheLastRoundHasLeft(t *testing.T) {
	t.Parallel()
	w := &fakeRows{}
	env := newEnvironment(w)
	unsearched := env.Now().Add(-2 * time.Hour).UTC()
	env.SetLastCompletionResult(
		contract.SweepResult{Until: env.Now().Add(-time.Minute), Unsearched: unsearched})

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	var swept contract.SweepResult
	if err := env.GetWorkflowResult(&swept); err != nil {
		t.Fatal(err)
	}
	if len(w.sweptSince) != 1 || !w.sweptSince[0].Equal(unsearched) || !swept.Unsearched.IsZero() {
		t.Errorf("round after one that has left workflows: got searches from %v and the result %+v; want one search from %v, and nothing left",
			w.sweptSince, swept, unsearched)
	}
}

// A part that fails must not stop the other parts, and no part may keep the round from its end, because the
// next round starts only then.
func TestMaintenance_ContinuesAfterAFailedPart(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{activities.Sweep, activities.StartDueRuns, activities.HealReservations} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			w := &fakeRows{failingPart: failing, partError: errors.New("part is broken")}
			env := newEnvironment(w)
			start := env.Now()
			last := start.Add(-7 * time.Minute).UTC()
			env.SetLastCompletionResult(contract.SweepResult{Until: last})

			env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

			var result contract.SweepResult
			if err := env.GetWorkflowResult(&result); err != nil {
				t.Fatal(err)
			}
			if len(w.sweptSince) == 0 || w.runChecks == 0 || w.healRounds == 0 {
				t.Errorf("calls of the parts: got %d sweeps, %d checks of the controller, %d healings; want each at least once",
					len(w.sweptSince), w.runChecks, w.healRounds)
			}
			if took := env.Now().Sub(start); took >= workflows.MaintenanceTimeout {
				t.Errorf("duration of the round: got %s, want less than %s", took, workflows.MaintenanceTimeout)
			}
			if len(result.Failures) != 1 || !strings.Contains(result.Failures[0], "part is broken") {
				t.Errorf("failures in the result: got %q, want the one error of the part", result.Failures)
			}
			if searched := !result.Until.Equal(last); searched != (failing != activities.Sweep) {
				t.Errorf("end of the searched period: got %v after the last end %v, want it later only if the sweep has succeeded",
					result.Until, last)
			}
		})
	}
}

// A step of the sweep that fails, such as the deletion of old rows, must not make the next round search for
// the same ended workflows again.
func TestMaintenance_FailedStepOfTheSweepKeepsTheSearch(t *testing.T) {
	t.Parallel()
	w := &fakeRows{
		sweepFailures: []string{"step is broken"},
		failingPart:   activities.StartDueRuns,
		partError:     errors.New("part is broken"),
	}
	env := newEnvironment(w)
	last := env.Now().Add(-7 * time.Minute).UTC()
	env.SetLastCompletionResult(contract.SweepResult{Until: last})

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	var result contract.SweepResult
	if err := env.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	if !result.Until.After(last) {
		t.Errorf("end of the searched period: got %v, want it after %v, the end of the period before",
			result.Until, last)
	}
	if f := strings.Join(result.Failures, "\n"); len(result.Failures) != 2 ||
		!strings.HasPrefix(f, "step is broken\n") || !strings.Contains(f, "part is broken") {
		t.Errorf("failures in the result: got %q, want that of the step and that of the part", result.Failures)
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
