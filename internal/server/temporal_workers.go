package server

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/config"
	"berth/internal/contract"
	"berth/internal/version"
	"berth/workflows"
)

// cachedWorkflows is the maximum number of workflow executions, of all task queues together, that a process
// keeps in memory. At about 45 KiB each, the cached executions take at most 250 MiB. If the cache is full,
// the SDK evicts the least recently used execution. When the next task of an evicted execution arrives, the
// SDK replays the execution from its history.
const cachedWorkflows = 5000

// slotsPerConnection is the number of slots of a worker for each connection of a pool to the database, for
// workflow tasks, activities and local activities each. A slot is a task that runs at the same time as
// others. Tasks wait for connections in the order of their arrival, within timeouts such as
// workflows.LocalDatabaseTimeout. With the default pool of eight connections, a worker has 1,000 slots, as
// many as the SDK's default.
const slotsPerConnection = 125

// deadlockTimeout is the time that a workflow may compute before the SDK reports a deadlock. deadlockTimeout
// equals the time that the Temporal server waits for a workflow task to be completed. The SDK's default for
// the deadlock timeout, one second, is too short on a busy machine.
const deadlockTimeout = 10 * time.Second

// startTemporalWorkers starts a worker for each task queue as soon as Temporal and its namespace answer, so
// that the process may start before the Temporal server. If the process does not have the role temporal,
// startTemporalWorkers does nothing.
func (a *App) startTemporalWorkers(ctx context.Context, fail func(error)) (stop func()) {
	if !a.hasRole(config.Temporal) {
		a.workersStarted.Store(true)
		return func() {}
	}
	var started []worker.Worker
	var wait sync.WaitGroup
	wait.Go(func() {
		var err error
		failures := failureLog{message: "starting the Temporal workers failed; retrying"}
		for {
			if started, err = a.startWorkers(ctx, fail); err == nil {
				a.workersStarted.Store(true)
				return
			}
			if ctx.Err() == nil {
				failures.add(ctx, err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	})
	return func() {
		wait.Wait()
		stopWorkers(started)
	}
}

// startWorkers starts all Temporal workers of the process. If one worker does not start, startWorkers stops
// the workers that have already started.
func (a *App) startWorkers(ctx context.Context, fail func(error)) ([]worker.Worker, error) {
	c := a.Temporal
	if err := awaitTemporal(ctx, c); err != nil {
		return nil, err
	}
	if err := a.sweep().apply(ctx, c); err != nil {
		return nil, err
	}
	worker.SetStickyWorkflowCacheSize(cachedWorkflows)
	var started []worker.Worker
	for _, queue := range contract.TaskQueues {
		w := worker.New(c, queue, a.workerOptions(queue, fail))
		workflows.Register(w, queue)
		activities.Register(w, a.activities.Functions())
		if err := w.Start(); err != nil {
			stopWorkers(started)
			return nil, fmt.Errorf("start the worker of task queue %s: %w", queue, err)
		}
		started = append(started, w)
	}
	return started, nil
}

// workerOptions returns the options of the worker of a task queue. The worker calls `fail` if it cannot
// continue.
func (a *App) workerOptions(queue string, fail func(error)) worker.Options {
	slots := slotsPerConnection * a.store.DB.Connections()
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	return worker.Options{
		WorkerStopTimeout:                       shutdownTimeout,
		DeadlockDetectionTimeout:                deadlockTimeout,
		DeploymentOptions:                       deploymentOptions(a.cfg.WorkerDeployment),
		WorkflowTaskPollerBehavior:              pollers,
		ActivityTaskPollerBehavior:              pollers,
		MaxConcurrentWorkflowTaskExecutionSize:  slots,
		MaxConcurrentActivityExecutionSize:      slots,
		MaxConcurrentLocalActivityExecutionSize: slots,
		MaxHeartbeatThrottleInterval:            activities.HeartbeatInterval,
		Interceptors:                            []interceptor.WorkerInterceptor{a.activityMetrics},
		OnFatalError: func(err error) {
			fail(fmt.Errorf("the worker of task queue %s failed: %w", queue, err))
		},
	}
}

// deploymentOptions returns the version with which the workers register in Temporal's Worker Versioning.
func deploymentOptions(d config.WorkerDeployment) worker.DeploymentOptions {
	if d.Name == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true,
		Version: worker.WorkerDeploymentVersion{
			DeploymentName: d.Name,
			BuildID:        cmp.Or(d.BuildID, version.Read().BuildID()),
		},
	}
}

// stopWorkers stops all Temporal workers of the process concurrently. Before a worker stops, it waits until
// its running tasks have ended.
func stopWorkers(ws []worker.Worker) {
	var wait sync.WaitGroup
	for _, w := range ws {
		wait.Go(w.Stop)
	}
	wait.Wait()
}
