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

// openNoop measures the peer of everything that is a workflow: one that does nothing. Started eagerly it costs the
// server two transactions; as the SDK starts it without being told otherwise, it costs three.
func openNoop(name string, eager bool) func(context.Context, *stack) (*subject, error) {
	return func(_ context.Context, s *stack) (*subject, error) {
		return s.bare(name, eager, func(workflow.Context) error { return nil })
	}
}

// openLimit measures the least that a workflow can be which does something: one local activity, which does nothing.
func openLimit(_ context.Context, s *stack) (*subject, error) {
	return s.bare("Least", true, func(ctx workflow.Context) error {
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Second})
		return workflow.ExecuteLocalActivity(ctx, func(context.Context) error { return nil }).Get(ctx, nil)
	})
}

// bare measures a workflow with its result awaited, client and worker in one process.
func (s *stack) bare(name string, eager bool, run func(workflow.Context) error) (*subject, error) {
	queue := "bench/" + name
	autoscaling := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	w := worker.New(s.temporal, queue, worker.Options{WorkflowTaskPollerBehavior: autoscaling, ActivityTaskPollerBehavior: autoscaling})
	w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	if err := w.Start(); err != nil {
		return nil, err
	}
	var last atomic.Int64
	return &subject{
		op: func(ctx context.Context, _ int) (int, error) {
			started := client.StartWorkflowOptions{ID: fmt.Sprintf("%s/%d", queue, last.Add(1)), TaskQueue: queue, EnableEagerStart: eager}
			return 1, insist(ctx, func() error {
				run, err := s.temporal.ExecuteWorkflow(ctx, started, name)
				if err != nil {
					return err
				}
				return run.Get(ctx, nil)
			})
		},
		close: func(ctx context.Context) ([]detail, error) {
			defer w.Stop()
			return histories(ctx, s.temporal, "each", []string{fmt.Sprintf("%s/%d", queue, last.Load())})
		},
	}, nil
}
