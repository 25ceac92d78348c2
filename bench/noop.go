package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	noopQueue = "bench"
	noopName  = "Nothing"
)

// openNoop measures the peer of everything that is a workflow: one that does nothing, started eagerly, with its
// result awaited, client and worker in one process.
func openNoop(_ context.Context, s *stack) (*subject, error) {
	autoscaling := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	w := worker.New(s.temporal, noopQueue, worker.Options{WorkflowTaskPollerBehavior: autoscaling, ActivityTaskPollerBehavior: autoscaling})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: noopName})
	if err := w.Start(); err != nil {
		return nil, err
	}
	var last atomic.Int64
	id := func() string { return fmt.Sprintf("%s/%d", noopQueue, last.Load()) }
	return &subject{
		op: func(ctx context.Context, _ int) (int, error) {
			run, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
				ID: fmt.Sprintf("%s/%d", noopQueue, last.Add(1)), TaskQueue: noopQueue, EnableEagerStart: true}, noopName)
			if err != nil {
				return 0, err
			}
			return 1, run.Get(ctx, nil)
		},
		close: func(ctx context.Context) ([]detail, error) {
			defer w.Stop()
			return histories(ctx, s.temporal, "each", []string{id()})
		},
	}, nil
}
