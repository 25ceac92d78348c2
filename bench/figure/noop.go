package figure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"berth/bench/harness"
	"berth/internal/contract"
)

// workload is a workflow whose time bench measures from its start to its result.
type workload struct {
	name       string // of the workflow type
	eager      bool   // start the workflow eagerly
	summary    string
	attributes temporal.SearchAttributes
	signals    int // number of signals that each workflow gets at the same time
	run        func(workflow.Context) error
}

// signalName is the name of the signals of a workload.
const signalName = "report"

// openNoop measures the baseline of all workflows: a workflow that does nothing. If the parameter `eager` is
// true, the workflow costs the Temporal server two transactions; with the SDK's default start, the workflow
// costs three transactions.
func openNoop(name string, eager bool) func(context.Context, *harness.Stack) (*Subject, error) {
	return openWorkload(workload{name: name, eager: eager, run: func(workflow.Context) error { return nil }})
}

// openEntryWorkflow measures the smallest workflow that has what the workflow of a journal entry has: the
// eager start, the summary, the search attributes, and one local activity. The local activity does nothing.
func openEntryWorkflow() func(context.Context, *harness.Stack) (*Subject, error) {
	return openWorkload(workload{
		name:       "LeastEntry",
		eager:      true,
		summary:    "create network bench",
		attributes: startAttributes("pending", "network"),
		run:        runLocalActivity,
	})
}

// openPortWorkflow measures the smallest workflow that has what the workflow of a new port has until the port
// is ACTIVE: the eager start, the summary, the search attributes, two signals, and one local activity that
// handles both. The local activity does nothing.
func openPortWorkflow() func(context.Context, *harness.Stack) (*Subject, error) {
	const reports = 2 // of the DHCP agent and the L2 agent
	return openWorkload(workload{
		name:    "LeastPort",
		eager:   true,
		summary: "port of server bench",
		attributes: startAttributes("DOWN", "port",
			temporal.NewSearchAttributeKeyKeyword(contract.AttributeHost).ValueSet(harness.L2Host),
			temporal.NewSearchAttributeKeyKeywordList(contract.AttributeWaitingFor).ValueSet([]string{"DHCP", "L2"})),
		signals: reports,
		run: func(ctx workflow.Context) error {
			received := workflow.GetSignalChannel(ctx, signalName)
			for range reports {
				received.Receive(ctx, nil)
			}
			return runLocalActivity(ctx)
		},
	})
}

// startAttributes returns the search attributes with which berth starts every workflow, and further ones.
func startAttributes(status, resource string, further ...temporal.SearchAttributeUpdate) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(append([]temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(contract.AttributeStatus).ValueSet(status),
		temporal.NewSearchAttributeKeyKeyword(contract.AttributeProject).ValueSet("admin"),
		temporal.NewSearchAttributeKeyKeyword(contract.AttributeResource).ValueSet(resource),
	}, further...)...)
}

// runLocalActivity runs a local activity that does nothing.
func runLocalActivity(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx,
		workflow.LocalActivityOptions{StartToCloseTimeout: time.Second})
	return workflow.ExecuteLocalActivity(ctx, func(context.Context) error { return nil }).Get(ctx, nil)
}

// openWorkload measures the time of a workflow from its start to its result. The Temporal client and the
// Temporal worker of this measurement run in the process of bench.
func openWorkload(l workload) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(_ context.Context, s *harness.Stack) (*Subject, error) {
		queue := "bench/" + l.name
		w := newWorker(s, queue)
		w.RegisterWorkflowWithOptions(l.run, workflow.RegisterOptions{Name: l.name})
		if err := w.Start(); err != nil {
			return nil, err
		}
		s.OnClose(w.Stop)
		var last atomic.Int64
		return &Subject{
			op: func(ctx context.Context, _ int) (int, error) {
				options := client.StartWorkflowOptions{
					ID:                    fmt.Sprintf("%s/%d", queue, last.Add(1)),
					TaskQueue:             queue,
					EnableEagerStart:      l.eager,
					StaticSummary:         l.summary,
					TypedSearchAttributes: l.attributes,
				}
				return 1, harness.RetryUnavailable(ctx, func() error { return l.execute(ctx, s.Temporal, options) })
			},
			Details: func(ctx context.Context) ([]harness.Detail, error) {
				return harness.HistoryDetails(ctx, s.Temporal, "each", []string{fmt.Sprintf("%s/%d", queue, last.Load())})
			},
		}, nil
	}
}

// execute starts a workflow, sends its signals and waits for its result.
func (l workload) execute(ctx context.Context, c client.Client, options client.StartWorkflowOptions) error {
	run, err := c.ExecuteWorkflow(ctx, options, l.name)
	if err != nil {
		return err
	}
	var senders errgroup.Group
	for range l.signals {
		senders.Go(func() error { return c.SignalWorkflow(ctx, options.ID, "", signalName, nil) })
	}
	if err := senders.Wait(); err != nil {
		return err
	}
	return run.Get(ctx, nil)
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
