package workflows_test

import (
	"testing"
	"time"

	"berth/internal/contract"
)

func TestRoundOfTheSweepGoesOnWhereTheLastOneLeftOff(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := environment(w)
	last := env.Now().Add(-7 * time.Minute).UTC()
	env.SetLastCompletionResult(contract.SweepResult{Until: last})
	began := env.Now()

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	var swept contract.SweepResult
	if err := env.GetWorkflowResult(&swept); err != nil {
		t.Fatal(err)
	}
	if len(w.swept) != 1 || !w.swept[0].Before(last) || last.Sub(w.swept[0]) > time.Minute {
		t.Errorf("looked back to %v, want a little before %v", w.swept, last)
	}
	if swept.Until.Before(began) || swept.RestartedWorkflows != 1 {
		t.Errorf("the round says %+v", swept)
	}
}

func TestFirstRoundOfTheSweepLooksBackADay(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := environment(w)

	env.ExecuteWorkflow(contract.Maintenance, contract.Input{Key: contract.KeySweep})

	if err := env.GetWorkflowError(); err != nil || len(w.swept) != 1 || env.Now().Sub(w.swept[0]) < 24*time.Hour {
		t.Errorf("looked back to %v, error %v", w.swept, err)
	}
}
