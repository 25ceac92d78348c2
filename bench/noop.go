package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// openNoop measures the baseline of all workflows: a workflow that does nothing. If the parameter `eager` is
// true, the workflow costs the Temporal server two transactions; with the SDK's default start, the workflow
// costs three transactions.
func openNoop(name string, eager bool) func(context.Context, *stack) (*subject, error) {
	return func(_ context.Context, s *stack) (*subject, error) {
		return measureWorkflow(s, name, eager, func(workflow.Context) error { return nil })
	}
}

// openLocalActivity measures the smallest workflow with an activity: the workflow runs one local activity,
// which does nothing.
func openLocalActivity(_ context.Context, s *stack) (*subject, error) {
	return measureWorkflow(s, "Least", true, func(ctx workflow.Context) error {
		ctx = workflow.WithLocalActivityOptions(ctx,
			workflow.LocalActivityOptions{StartToCloseTimeout: time.Second})
		return workflow.ExecuteLocalActivity(ctx, func(context.Context) error { return nil }).Get(ctx, nil)
	})
}

// measureWorkflow measures the time of a workflow from its start to its result. The Temporal client and the
// Temporal worker of this measurement run in the process of bench.
func measureWorkflow(s *stack, name string, eager bool, run func(workflow.Context) error) (*subject, error) {
	queue := "bench/" + name
	w := newWorker(s, queue)
	w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	if err := w.Start(); err != nil {
		return nil, err
	}
	s.onClose(w.Stop)
	var last atomic.Int64
	return &subject{
		op: func(ctx context.Context, _ int) (int, error) {
			options := client.StartWorkflowOptions{
				ID:               fmt.Sprintf("%s/%d", queue, last.Add(1)),
				TaskQueue:        queue,
				EnableEagerStart: eager,
			}
			return 1, retryUnavailable(ctx, func() error {
				run, err := s.temporal.ExecuteWorkflow(ctx, options, name)
				if err != nil {
					return err
				}
				return run.Get(ctx, nil)
			})
		},
		details: func(ctx context.Context) ([]detail, error) {
			return historyDetails(ctx, s.temporal, "each", []string{fmt.Sprintf("%s/%d", queue, last.Load())})
		},
	}, nil
}

// newWorker returns a Temporal worker whose pollers scale automatically, like those of berth's workers.
func newWorker(s *stack, queue string) worker.Worker {
	autoscaling := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	return worker.New(
		s.temporal,
		queue,
		worker.Options{WorkflowTaskPollerBehavior: autoscaling, ActivityTaskPollerBehavior: autoscaling},
	)
}
