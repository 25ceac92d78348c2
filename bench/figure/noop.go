package figure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/bench/harness"
)

// openNoop measures the baseline of all workflows: a workflow that does nothing. If the parameter `eager` is
// true, the workflow costs the Temporal server two transactions; with the SDK's default start, the workflow
// costs three transactions.
func openNoop(name string, eager bool) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(_ context.Context, s *harness.Stack) (*Subject, error) {
		return measureWorkflow(s, name, eager, func(workflow.Context) error { return nil })
	}
}

// openLocalActivity measures the smallest workflow with an activity: the workflow runs one local activity,
// which does nothing.
func openLocalActivity(_ context.Context, s *harness.Stack) (*Subject, error) {
	return measureWorkflow(s, "Least", true, func(ctx workflow.Context) error {
		ctx = workflow.WithLocalActivityOptions(ctx,
			workflow.LocalActivityOptions{StartToCloseTimeout: time.Second})
		return workflow.ExecuteLocalActivity(ctx, func(context.Context) error { return nil }).Get(ctx, nil)
	})
}

// measureWorkflow measures the time of a workflow from its start to its result. The Temporal client and the
// Temporal worker of this measurement run in the process of bench.
func measureWorkflow(
	s *harness.Stack,
	name string,
	eager bool,
	run func(workflow.Context) error,
) (*Subject, error) {
	queue := "bench/" + name
	w := newWorker(s, queue)
	w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	if err := w.Start(); err != nil {
		return nil, err
	}
	s.OnClose(w.Stop)
	var last atomic.Int64
	return &Subject{
		op: func(ctx context.Context, _ int) (int, error) {
			options := client.StartWorkflowOptions{
				ID:               fmt.Sprintf("%s/%d", queue, last.Add(1)),
				TaskQueue:        queue,
				EnableEagerStart: eager,
			}
			return 1, harness.RetryUnavailable(ctx, func() error {
				run, err := s.Temporal.ExecuteWorkflow(ctx, options, name)
				if err != nil {
					return err
				}
				return run.Get(ctx, nil)
			})
		},
		Details: func(ctx context.Context) ([]harness.Detail, error) {
			return harness.HistoryDetails(ctx, s.Temporal, "each", []string{fmt.Sprintf("%s/%d", queue, last.Load())})
		},
	}, nil
}

// newWorker returns a Temporal worker whose pollers scale automatically, like those of berth's workers.
func newWorker(s *harness.Stack, queue string) worker.Worker {
	autoscaling := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	return worker.New(
		s.Temporal,
		queue,
		worker.Options{WorkflowTaskPollerBehavior: autoscaling, ActivityTaskPollerBehavior: autoscaling},
	)
}
