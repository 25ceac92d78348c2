package figure

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"berth/bench/harness"
)

const (
	timerQueue = "bench-timers"
	timerName  = "Timer"
)

// timerFigure measures timers. timerFigure runs workflows that wait for a timer and do nothing else; these
// workflows are the baseline with which bench compares the starts and ends of leases.
type timerFigure struct {
	*harness.Stack
	n       int
	queue   string
	round   int
	current *deadlineSet // deadlines of the current round
}

// openTimers measures how late n timers fire.
func openTimers(n int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(_ context.Context, s *harness.Stack) (*Subject, error) {
		t := &timerFigure{Stack: s, n: s.ScaleDeadlines(n)}
		t.queue = fmt.Sprint(timerQueue, t.n)
		w := newWorker(s, t.queue)
		w.RegisterWorkflowWithOptions(t.waitForTimer, workflow.RegisterOptions{Name: timerName})
		if err := w.Start(); err != nil {
			return nil, err
		}
		s.OnClose(w.Stop)
		return &Subject{MeasureRound: t.measureRound}, nil
	}
}

// waitForTimer is the workflow function of the workflows that timerFigure measures. waitForTimer waits for
// its timer and records when the timer fired. waitForTimer can store the time in a variable of the bench
// process, because only the bench process runs a worker for this workflow.
func (t *timerFigure) waitForTimer(ctx workflow.Context, i int) error {
	if err := workflow.Sleep(ctx, t.current.deadlines[i].Sub(workflow.Now(ctx))); err != nil ||
		workflow.IsReplaying(ctx) {
		return err
	}
	return t.current.record(i, time.Now())
}

func (t *timerFigure) measureRound(ctx context.Context, p harness.Pace) (one harness.Sample, err error) {
	begin, trial := time.Now(), t.ScaleDeadlines(trialCount)
	if _, err := t.fireAll(ctx, newDeadlineSet(trial, p.Window, begin)); err != nil {
		return one, err
	}
	took := time.Since(begin)
	err = retryWithMargin(func(margin float64) (bool, error) {
		d := newDeadlineSet(t.n, p.Window, time.Now().Add(preparationTime(t.n, trial, took, margin)))
		inTime, err := t.fireAll(ctx, d)
		one = latenessSample(d)
		return inTime, err
	})
	return one, err
}

// fireAll starts a workflow for each deadline and waits until all workflows have ended. The result `inTime`
// is true if all workflows were started before the first deadline.
func (t *timerFigure) fireAll(ctx context.Context, d *deadlineSet) (inTime bool, err error) {
	t.round++
	t.current = d
	runs, err := t.startTimers(ctx, len(d.deadlines))
	inTime = time.Now().Before(d.deadlines[0])
	for i := 0; i < len(runs) && err == nil; i++ {
		err = harness.RetryUnavailable(ctx, func() error { return runs[i].Get(ctx, nil) })
	}
	return inTime, err
}

// startTimers starts n workflows.
func (t *timerFigure) startTimers(ctx context.Context, n int) ([]client.WorkflowRun, error) {
	var all errgroup.Group
	all.SetLimit(t.Clients)
	runs := make([]client.WorkflowRun, n)
	for i := range runs {
		all.Go(func() error {
			return harness.RetryUnavailable(ctx, func() (err error) {
				runs[i], err = t.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
					ID:               fmt.Sprintf("%s/%d/%d", t.queue, t.round, i),
					TaskQueue:        t.queue,
					EnableEagerStart: true,
				}, timerName, i)
				return err
			})
		})
	}
	return runs, all.Wait()
}
